package ingest

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/keyring"
)

// call is one request on its way. It goes back to a pool with its buffers, so
// that a request costs few allocations.
type call struct {
	edge    *Edge
	w       http.ResponseWriter
	r       *http.Request
	dialect *dialect
	trace   map[string]string // headers of its messages; nil: none
	key     keyring.Key       // zero: none was needed

	received time.Time
	held     int64 // taken from the edge's budget

	wire, plain []byte
	items       []framed
	single      bool // one object, not a batch of one
	env         envelope
	fallbackID  string // of an event that has none; empty: a new one

	item     *item
	out      draft  // of the item that is being judged
	payloads []byte // of all messages, one after the other
	ends     []int  // where each ends
	msgs     []forebay.Message
	index    []int // of which item each message is
	bad      []badrow.Row
	results  []Result

	accepted, duplicate, rejected int
}

func (c *call) take(n int64) bool {
	if !c.edge.budget.take(n) {
		return false
	}
	c.held += n
	return true
}

// itemOverhead is what an item takes beside its bytes: its message or bad row, its
// result, its part of the answer. An item of two bytes costs hundreds.
const itemOverhead = 768

// keptBuffer is the largest buffer that goes back to the pool.
const keptBuffer = 1 << 20

func (e *Edge) newCall(w http.ResponseWriter, r *http.Request, d *dialect) *call {
	c, _ := e.calls.Get().(*call)
	if c == nil {
		c = &call{edge: e, item: newItem()}
	}
	c.w, c.r, c.dialect, c.key = w, r, d, keyring.Key{}
	c.received = e.cfg.Now()
	c.trace = traceOf(r.Header)
	return c
}

// release gives back what the call held. Nothing may use its buffers any more.
func (c *call) release() {
	e := c.edge
	e.budget.give(c.held)
	c.w, c.r, c.held = nil, nil, 0
	for _, b := range []*[]byte{&c.wire, &c.plain, &c.payloads} {
		if cap(*b) > keptBuffer {
			*b = nil
		}
	}
	c.reset()
	c.item.drop()
	c.out = draft{}
	e.calls.Put(c)
}

// reset forgets a request and keeps the room that it took.
func (c *call) reset() {
	clear(c.items)
	clear(c.msgs)
	clear(c.bad)
	clear(c.results)
	c.items, c.env, c.single = c.items[:0], envelope{}, false
	c.payloads, c.ends, c.msgs, c.index, c.bad, c.results = c.payloads[:0], c.ends[:0], c.msgs[:0], c.index[:0], c.bad[:0], c.results[:0]
	c.accepted, c.duplicate, c.rejected = 0, 0, 0
}

// judge gives each item its verdict: a message, or a bad row with the reason.
func (c *call) judge() *problem {
	sent := c.env.sentTime()
	if p := c.dropKeys(); p != nil {
		return p
	}
	if p := c.mergeEnvelope(); p != nil {
		return p
	}
	size := int64(len(c.items)) * itemOverhead
	for i := range c.items {
		size += int64(len(c.items[i].raw))
	}
	if !c.take(size) { // each event is copied once, into its message or its bad row
		return outOfMemory()
	}
	for i := range c.items {
		bad := c.draft(i, c.dialect, sent)
		if bad == nil {
			continue
		}
		if bad.code == codeInvalidJSON && c.single {
			return unreadable(bad.message) // one event is its own envelope
		}
		c.reject(i, c.item.anyID(), bad)
	}
	c.cutPayloads()
	return nil
}

// draft makes the message of one item.
func (c *call) draft(i int, d *dialect, sent time.Time) *fault {
	it, limits := c.item, &c.edge.cfg.Limits
	one := &c.items[i]
	if bad := it.read(one.raw, one.facts, limits, d.index); bad != nil {
		return bad
	}
	if d == nativeDialect && it.value[fSpec] != nil && it.value[fType] == nil {
		d = cloudDialect // a CloudEvent, sniffed
		if bad := it.read(one.raw, one.facts, limits, d.index); bad != nil {
			return bad
		}
	}
	out := &c.out
	*out = draft{}
	out.SentAt = sent
	if bad := d.draft(d, it, out); bad != nil {
		return bad
	}
	out.ReceivedAt = c.received
	out.OccurredAt, out.OriginalAt = correct(out.OccurredAt, out.SentAt, c.received)
	out.Source = c.source(d)
	if bad := c.edge.cfg.Schemas.check(out); bad != nil {
		return bad
	}
	if out.ID == "" {
		out.ID = c.fallbackID
	}
	if out.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return &fault{codeRefused, "", "no id could be made: " + err.Error()}
		}
		out.ID = id.String()
	}
	return c.add(i, d, out)
}

func (c *call) add(i int, d *dialect, out *draft) *fault {
	payloads, err := out.Append(c.payloads)
	if err != nil {
		return &fault{codeInvalidText, "", err.Error()}
	}
	c.payloads = payloads
	c.ends = append(c.ends, len(payloads))
	c.index = append(c.index, i)
	c.msgs = append(c.msgs, forebay.Message{
		ID: out.ID, Queue: c.edge.cfg.Queue, Kind: out.Type, Group: out.group,
		Headers: c.trace, Fingerprint: out.fingerprint(),
	})
	c.warn(i, d, out)
	return nil
}

// warn notes what was odd with an event that is accepted all the same.
func (c *call) warn(i int, d *dialect, out *draft) {
	f := out.said
	switch {
	case f.code != "":
	case c.item.repaired:
		f = fault{codeRepaired, "", "text that cannot be stored (NUL, half a surrogate pair, or not UTF-8) was replaced by U+FFFD"}
	case c.item.unknown != nil && !d.whole:
		name := unquote(c.item.unknown)
		f = fault{codeUnknownMember, "/" + shorten(pointerToken.Replace(name)), "the member " + shorten(name) + " is not known and was not kept; what belongs to the event goes into payload"}
	default:
		return
	}
	c.results = append(c.results, Result{Index: i, ID: out.ID, Status: Accepted, Code: f.code, Pointer: f.pointer, Message: f.message})
}

// cutPayloads gives each message its part of the common buffer, which may have
// moved while it grew.
func (c *call) cutPayloads() {
	start := 0
	for i, end := range c.ends {
		c.msgs[i].Payload = c.payloads[start:end:end]
		start = end
	}
}

// reject notes why an item is refused. Its bytes are copied: the store may still
// read them when this call has ended.
func (c *call) reject(i int, id string, f *fault) {
	raw := c.items[i].raw
	if f.code != codeInvalidJSON { // that stays as it came
		raw = c.env.stamp(raw)
	}
	c.bad = append(c.bad, badrow.Row{
		At: c.received, KeyID: c.key.ID, Dialect: c.dialect.rowName(), Index: i, EventID: id,
		Code: f.code, Pointer: f.pointer, Reason: f.message,
		Bytes: append([]byte(nil), raw[:min(len(raw), badrow.MaxRowBytes)]...), Cut: len(raw) > badrow.MaxRowBytes,
	})
	c.results = append(c.results, Result{Index: i, ID: id, Status: Rejected, Code: f.code, Pointer: f.pointer, Message: f.message})
	c.rejected++
}

// store keeps the bad rows first and then sends the good events: when the bad
// rows cannot be kept, the client is told to come again and nothing was queued.
func (c *call) store(ctx context.Context) *problem {
	if len(c.bad) > 0 {
		if err := c.edge.cfg.Bad.Put(ctx, c.bad); err != nil {
			return c.failed(err)
		}
	}
	if len(c.msgs) == 0 {
		return nil
	}
	sent, err := c.edge.send(ctx, c.msgs)
	if err != nil {
		return c.failed(err)
	}
	return c.settle(ctx, sent)
}

// send sends messages; if any has an answer, each has one.
func (e *Edge) send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	sent, err := e.cfg.Sender.Send(ctx, msgs)
	if err == nil && len(sent) != len(msgs) {
		err = forebay.Errorf(forebay.CodeInternal, "ingest: send", "%d answers for %d messages", len(sent), len(msgs))
	}
	return sent, err
}

// failed is the answer when a store fails. It may go on reading what it was given,
// so the buffers do not go back to the pool.
func (c *call) failed(err error) *problem {
	c.msgs, c.payloads, c.bad = nil, nil, nil
	c.edge.outage.failed(err, c.received)
	return storeProblem(err, c.edge.gate.wait())
}

// settle takes the verdicts of the queue. One that is not of the event's own
// making refuses the request: the client sends it again, and what was stored is
// then a duplicate.
func (c *call) settle(ctx context.Context, sent []forebay.SendResult) *problem {
	late := len(c.bad)
	for n, s := range sent {
		i := c.index[n]
		switch code := forebay.CodeOf(s.Err); {
		case s.Err == nil && !s.Duplicate:
			c.accepted++
		case s.Err == nil:
			c.duplicate++
			c.results = append(c.results, duplicateResult(i, s))
		case code == forebay.CodeInvalid || code == forebay.CodeTooLarge:
			c.reject(i, c.msgs[n].ID, &fault{codeRefused, "", s.Err.Error()})
		default:
			return c.failed(s.Err)
		}
	}
	if len(c.bad) > late {
		if err := c.edge.cfg.Bad.Put(ctx, c.bad[late:]); err != nil {
			return c.failed(err)
		}
	}
	c.edge.outage.stored(c.received)
	return nil
}

func duplicateResult(i int, s forebay.SendResult) Result {
	r := Result{Index: i, ID: s.ID, Status: Duplicate}
	if s.Conflict {
		r.Code, r.Message = codeConflict, "an earlier event has this id and another content; the first one is kept"
	}
	return r
}
