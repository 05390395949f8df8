// Package inbox keeps messages for users of an application and pushes them to open
// pages: the in-app kind of notification.
//
// It promises: a message is stored before Put returns, once however often it is
// put; a stream that resumes where it left off gets each message after that exactly
// once, and is told when it cannot resume; a slow client holds up nobody and is cut
// off; Close ends all streams at once.
//
// It refuses to keep without bound: a user has at most MaxMessages, the oldest
// leave first, and each leaves after Keep. It does not know who may read whose
// inbox: the guard that Register is given does.
//
// A user's inbox is one document, the list of what is in it, and one document per
// message. Streams read from the store; what wakes them is only a hint. A message
// that another process stored is seen with the next ping.
package inbox

import (
	"context"
	"errors"
	"hash/maphash"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of an inbox.
const (
	MaxUserBytes    = 256
	MaxIDBytes      = 256
	MaxMessageBytes = 16 << 10
	MaxPage         = 100

	listCollection    = "inbox"
	messageCollection = "inbox:message"

	maxTries = 10 // of a change that other processes get in the way of
	stripes  = 64
)

// Config of an Inbox. Documents is needed.
type Config struct {
	Documents   engine.Documents // a broker, say
	MaxMessages int              // of a user; 0: 500
	Keep        time.Duration    // 0: 30 days
	Origins     []string         // other origins whose pages may open a WebSocket, as host or scheme://host
	Ping        time.Duration    // 0: 15 s
	Write       time.Duration    // of one event to one client, before it is cut off; 0: 10 s
	MaxStreams  int              // open at once; 0: 10,000
	PerUser     int              // of them of one user; 0: 16
	Now         func() time.Time
}

// Inbox keeps messages. Its methods may be called from several goroutines.
type Inbox struct {
	cfg   Config
	hub   *hub
	seed  maphash.Seed
	locks [stripes]chan struct{} // a change at a time of one user, in this process
	now   func() time.Time
	wait  sync.WaitGroup // streams
}

// New makes an inbox. Close it.
func New(cfg Config) (*Inbox, error) {
	fill(&cfg.MaxMessages, 500)
	fill(&cfg.Keep, 30*24*time.Hour)
	fill(&cfg.Ping, 15*time.Second)
	fill(&cfg.Write, 10*time.Second)
	fill(&cfg.MaxStreams, 10_000)
	fill(&cfg.PerUser, 16)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	b := &Inbox{cfg: cfg, hub: newHub(cfg.MaxStreams, cfg.PerUser), seed: maphash.MakeSeed(), now: cfg.Now}
	for i := range b.locks {
		b.locks[i] = make(chan struct{}, 1)
	}
	return b, nil
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c *Config) check() error {
	var problems []error
	wrong := func(bad bool, field, format string, args ...any) {
		if bad {
			problems = append(problems, invalid(field, format, args...))
		}
	}
	wrong(c.Documents == nil, "documents", "no store is given")
	wrong(c.MaxMessages < 1 || c.MaxMessages > 2000, "maxMessages", "%d; 1 to 2000 are allowed", c.MaxMessages)
	wrong(c.Keep < time.Minute, "keep", "%s; a minute and more is allowed", c.Keep)
	wrong(c.Ping < 0, "ping", "%s; more than 0 is allowed", c.Ping)
	wrong(c.Write < 0, "write", "%s; more than 0 is allowed", c.Write)
	wrong(c.MaxStreams < 1, "maxStreams", "%d; 1 or more is allowed", c.MaxStreams)
	wrong(c.PerUser < 1, "perUser", "%d; 1 or more is allowed", c.PerUser)
	return errors.Join(problems...)
}

func invalid(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "inbox", format, args...)
	e.Field = field
	return e
}

// Close ends all streams, refuses new ones, and returns when they have ended.
func (b *Inbox) Close() {
	b.hub.close()
	b.wait.Wait()
}

// Message is one entry of an inbox.
type Message struct {
	ID      string         `json:"id"`
	Place   string         `json:"place"` // where to go on after it
	At      time.Time      `json:"at"`    // when it was put
	Read    bool           `json:"read"`
	Message jsontext.Value `json:"message"` // as it was put
}

// Put stores a message for a user, unless one with the id is there. The message is
// JSON.
func (b *Inbox) Put(ctx context.Context, user, id string, message []byte) error {
	value := jsontext.Value(message).Clone()
	switch err := checkUser(user); {
	case err != nil:
		return err
	case id == "" || len(id) > MaxIDBytes || !utf8.ValidString(id):
		return invalid("id", "an id of %d bytes; 1 to %d bytes of text are allowed", len(id), MaxIDBytes)
	case len(message) > MaxMessageBytes:
		e := forebay.Errorf(forebay.CodeTooLarge, "inbox", "a message of %d bytes; up to %d are allowed", len(message), MaxMessageBytes)
		e.Field = "message"
		return e
	case value.Compact() != nil:
		return invalid("message", "it is not JSON")
	}
	_, changed, err := b.change(ctx, user, func(l *list) (bool, []string, error) {
		if l.has(id) {
			return false, nil, nil
		}
		// Before the list names it: a list never names what is not there.
		now := b.now()
		_, err := b.cfg.Documents.PutDocument(ctx, engine.Document{
			Collection: messageCollection, Key: keyOf(user, id), Rev: engine.AnyRev, Value: value, Expires: now.Add(b.cfg.Keep),
		})
		if err != nil {
			return false, nil, err
		}
		l.Seq++
		l.Entries = append(l.Entries, entry{Seq: l.Seq, ID: id, At: now.UnixMilli()})
		over := max(0, len(l.Entries)-b.cfg.MaxMessages)
		var gone []string
		for _, e := range l.Entries[:over] {
			gone = append(gone, e.ID)
		}
		l.Entries = l.Entries[over:]
		return true, gone, nil
	})
	if changed {
		b.hub.wake(user)
	}
	return err
}

// Mark sets whether messages have been read; without ids, all of them. It gives the
// number of those that have not.
func (b *Inbox) Mark(ctx context.Context, user string, ids []string, read bool) (unread int, err error) {
	if err := checkUser(user); err != nil {
		return 0, err
	}
	named := map[string]bool{}
	for _, id := range ids {
		named[id] = true
	}
	l, changed, err := b.change(ctx, user, func(l *list) (bool, []string, error) {
		changed := false
		for i := range l.Entries {
			if e := &l.Entries[i]; (len(ids) == 0 || named[e.ID]) && e.Read != read {
				e.Read, changed = read, true
			}
		}
		return changed, nil, nil
	})
	if changed {
		b.hub.wake(user)
	}
	return l.unread(), err
}

// checkUser tells whether a text can name a user.
func checkUser(user string) error {
	if user == "" || len(user) > MaxUserBytes || !utf8.ValidString(user) || strings.ContainsFunc(user, unicode.IsControl) {
		return invalid("user", "a name of %d bytes; 1 to %d bytes of text without control characters are allowed", len(user), MaxUserBytes)
	}
	return nil
}
