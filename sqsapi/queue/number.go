package queue

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// In FIFO queues the id of a message tells its sequence number, so that a duplicate
// can be answered with that of the first one without a look: <MessageId>.<20 digits>.
// The MessageId is a UUID of version 7, which tells when it was made.
const numberDigits = 20

func numbered(id string, number int64) string { return id + "." + sequence(number) }

// sequence writes a number such that greater ones are also greater as text.
func sequence(number int64) string {
	digits := strconv.FormatInt(number, 10)
	return "1" + strings.Repeat("0", numberDigits-1-len(digits)) + digits
}

// splitID takes an id apart; the number is empty where it tells none.
func splitID(id string) (messageID, number string) {
	at := len(id) - numberDigits - 1
	if at < 1 || id[at] != '.' {
		return id, ""
	}
	for _, c := range []byte(id[at+1:]) {
		if c < '0' || c > '9' {
			return id, ""
		}
	}
	return id[:at], id[at+1:]
}

// stamp writes a time into a UUID, which becomes one of version 7.
func stamp(id string, at time.Time) string {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	text := hex.EncodeToString(ms[2:])
	return text[:8] + "-" + text[8:] + "-7" + id[15:]
}

// stamped is the time in the MessageId of a FIFO queue.
func stamped(messageID string) (time.Time, bool) {
	if len(messageID) != 36 {
		return time.Time{}, false
	}
	raw, err := hex.DecodeString(messageID[:8] + messageID[9:13])
	if err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(append([]byte{0, 0}, raw...)))), true
}

// numbers gives sequence numbers. They follow the clock, in nanoseconds, but never go
// back: a bound that no number has reached is stored before numbers come near it, and
// a later process begins there.
type numbers struct {
	docs engine.Documents
	now  func() time.Time

	mu       sync.Mutex
	last     int64
	reserved int64 // 0: what is stored is not known yet
}

// reserve is how far ahead of the clock the stored bound is put.
const reserve = time.Minute

// take gives the first of n numbers.
func (g *numbers) take(ctx context.Context, n int) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reserved == 0 {
		if err := g.begin(ctx); err != nil {
			return 0, err
		}
	}
	first := max(g.last+1, g.now().UnixNano())
	last := first + int64(n) - 1
	if last >= g.reserved {
		bound := last + int64(reserve)
		_, err := g.docs.PutDocument(ctx, engine.Document{Collection: otherDocs, Key: "numbers", Rev: engine.AnyRev, Value: strconv.AppendInt(nil, bound, 10)})
		if err != nil {
			return 0, err
		}
		g.reserved = bound
	}
	g.last = last
	return first, nil
}

// begin reads what a former process may have reached.
func (g *numbers) begin(ctx context.Context) error {
	d, err := g.docs.Document(ctx, otherDocs, "numbers")
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		g.reserved = 1
		return nil
	}
	if err != nil {
		return err
	}
	g.reserved, err = strconv.ParseInt(string(d.Value), 10, 64)
	g.last = g.reserved
	return err
}
