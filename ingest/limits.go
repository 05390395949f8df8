package ingest

import (
	"errors"
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
)

// Limits of what the edge takes. Zero values mean the default that each comment
// states. They are published: a client may rely on them.
type Limits struct {
	WireBytes     int64 // of one request's body as it is sent; 500,000
	DecodedBytes  int64 // of one body once decompressed; 4 MiB
	Ratio         int64 // of decompression, counted beyond the first MiB; 200
	Events        int   // in one request; 2,500
	EventBytes    int   // of one event; 256 KiB
	Depth         int   // of nesting in one event; 100
	InFlightBytes int64 // of all bodies that are held at one moment; 64 MiB
}

// Bounds of single fields. Ids are bounded in bytes since stores are.
const (
	maxTypeRunes = 50                   // of a native event type
	maxTypeBytes = forebay.MaxKindBytes // of a type in other dialects
	maxIDBytes   = forebay.MaxIDBytes
)

const (
	// envelopeBytes is what the stored event has beyond the payload, at most: ids,
	// times, names, all escaped.
	envelopeBytes = 8 << 10
	maxEvents     = 10_000 // engine.MaxSend: one request is one call of Send
	maxDepth      = 1_000  // what SQLite's JSON functions take
)

func (l *Limits) fill() {
	set(&l.WireBytes, 500_000)
	set(&l.DecodedBytes, 4<<20)
	set(&l.Ratio, 200)
	set(&l.Events, 2_500)
	set(&l.EventBytes, 256<<10)
	set(&l.Depth, 100)
	set(&l.InFlightBytes, 64<<20)
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (l *Limits) check() error {
	var errs []error
	within := func(name string, value, least, most int64) {
		if value < least || value > most {
			errs = append(errs, fmt.Errorf("limits.%s is %d; %d to %d are allowed", name, value, least, most))
		}
	}
	within("wireBytes", l.WireBytes, 1<<10, 64<<20)
	within("decodedBytes", l.DecodedBytes, 1<<10, 256<<20)
	within("ratio", l.Ratio, 2, 10_000)
	within("events", int64(l.Events), 1, maxEvents)
	within("eventBytes", int64(l.EventBytes), 256, forebay.MaxPayloadBytes-envelopeBytes)
	within("depth", int64(l.Depth), 2, maxDepth)
	within("inFlightBytes", l.InFlightBytes, 1<<20, 1<<40)
	return errors.Join(errs...)
}

// Times of an http.Server that carries the edge. They stop clients that send one
// byte at a time: such a client holds a connection and a few KiB, for so long.
// ReadTimeout is for a body that is answered unread (a wrong key, a GET with a
// body): net/http waits for the rest of it before it writes the answer. It ends with
// the body, so it costs long handlers and streams nothing. WriteTimeout is for those
// who send on and read no answers; it is longer than any call may take, and a stream
// lifts it for itself. The edge sets shorter deadlines for each body that it reads and
// each long answer.
const (
	ReadHeaderTimeout = 5 * time.Second
	ReadTimeout       = 15 * time.Second
	WriteTimeout      = 2 * time.Minute
	IdleTimeout       = 75 * time.Second
	MaxHeaderBytes    = 16 << 10

	slowestBody = 16 << 10 // bytes a second; a large body may take this pace at worst
	answerTime  = 30 * time.Second
)

// bodyTime is how long a body of so many bytes may take to arrive.
func bodyTime(size int64) time.Duration {
	return ReadTimeout + time.Duration(size/slowestBody)*time.Second
}
