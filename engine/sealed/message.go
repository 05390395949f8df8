package sealed

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// placeOf is what the payload of a message is bound to. Jobs with one dedup key may get
// each other's payloads from the engine behind (debounce, keep last).
func placeOf(m *forebay.Message) place {
	if m.Job != nil && m.DedupKey != "" {
		return place{what: isPayload, queue: m.Queue, id: m.DedupKey, bound: flagByKey}
	}
	return place{what: isPayload, queue: m.Queue, id: m.ID}
}

// maxCarried is the most of what a transport takes (1 MiB): it sends bytes as base64, beside
// the id, the kind and the headers.
const maxCarried = (1<<20 - 8<<10) / 4 * 3

// payload gives a payload sealed.
func (e *Engine) payload(p place, plain []byte) ([]byte, error) {
	if isSealed(plain) {
		return nil, forebay.Errorf(forebay.CodeInvalid, "sealed", "the payload begins as one that is sealed; one that cannot be opened can be replayed, but not be sent as another")
	}
	if len(plain) == 0 || len(plain) > forebay.MaxPayloadBytes || !e.seals(p.queue) {
		return plain, nil // too large: the engine behind refuses it
	}
	most := forebay.MaxPayloadBytes
	if e.sealer.vault == nil {
		most = maxCarried
	}
	out := e.sealer.fit(p, plain, most)
	if out == nil {
		err := forebay.Errorf(forebay.CodeTooLarge, "", "the payload has %d bytes and cannot be compressed; with encryption at most %d are allowed",
			len(plain), most-e.sealer.room())
		err.Field = "payload"
		return nil, err
	}
	return out, nil
}

// sealAll gives messages sealed, without those that are refused; nil: none is.
func (e *Engine) sealAll(msgs []forebay.Message) (out []forebay.Message, refused []error) {
	out = make([]forebay.Message, 0, len(msgs))
	for i := range msgs {
		m := msgs[i]
		payload, err := e.payload(placeOf(&m), m.Payload)
		if err != nil {
			if refused == nil {
				refused = make([]error, len(msgs))
			}
			refused[i] = err
			continue
		}
		if e.seals(m.Queue) {
			sum := m.Fingerprint
			if sum == 0 {
				sum = xxhash.Sum64(m.Payload)
			}
			m.Fingerprint = e.sealer.print(1, sum)
		}
		m.Payload = payload
		out = append(out, m)
	}
	return out, refused
}

// openMessage opens the payload of a message. With an error it stays as it is.
func (e *Engine) openMessage(ctx context.Context, m *forebay.Message) error {
	if !isSealed(m.Payload) {
		return nil
	}
	p := placeOf(m)
	if flags := m.Payload[len(magic):]; len(flags) > 0 {
		switch byKey := flags[0]&flagByKey != 0; {
		case byKey && m.DedupKey != "":
			p.id = m.DedupKey
		case !byKey:
			p.id = m.ID
		}
	}
	plain, err := e.sealer.open(ctx, p, m.Payload)
	if err == nil {
		m.Payload = plain
	}
	return err
}

// unless gives err where it is not that something does not open: lists show that as it is.
func unless(err error) error {
	var missing *noKey
	if err == nil || errors.As(err, &missing) || forebay.CodeOf(err) == forebay.CodeDamaged {
		return nil
	}
	return err
}

// Receipts of what is sealed tell for what they are, since a settlement does not.
const receiptMark = "~s."

func (s *sealer) marked(r forebay.Receipt, queue, id string) forebay.Receipt {
	b := make([]byte, printBytes, printBytes+len(queue)+1+len(id))
	b = append(append(append(b, queue...), 0), id...)
	binary.BigEndian.PutUint64(b, s.receiptPrint(r, b[printBytes:]))
	return r + forebay.Receipt(receiptMark+base64.RawURLEncoding.EncodeToString(b))
}

const printBytes = 8

// receiptPrint stands for a receipt and what it is said to be for.
func (s *sealer) receiptPrint(inner forebay.Receipt, what []byte) uint64 {
	h := xxhash.New()
	_, _ = h.WriteString(string(inner)) // never fails
	_, _ = h.Write(what)
	return s.print(3, h.Sum64())
}

// bare is the receipt of the engine behind, and what it is for. One that was changed stays as
// it is, and is none of that engine's.
func (s *sealer) bare(r forebay.Receipt) (inner forebay.Receipt, p place) {
	unknown := place{bound: flagUnbound} // from before there was sealing
	at := strings.LastIndex(string(r), receiptMark)
	if at < 0 || s.prints == nil {
		return r, unknown
	}
	b, err := base64.RawURLEncoding.DecodeString(string(r[at+len(receiptMark):]))
	if err != nil || len(b) < printBytes || binary.BigEndian.Uint64(b) != s.receiptPrint(r[:at], b[printBytes:]) {
		return r, unknown
	}
	queue, id, _ := strings.Cut(string(b[printBytes:]), "\x00")
	return r[:at], place{queue: queue, id: id}
}

func (s *sealer) bareAll(rs []forebay.Receipt) []forebay.Receipt {
	out := make([]forebay.Receipt, len(rs))
	for i, r := range rs {
		out[i], _ = s.bare(r)
	}
	return out
}

// How long a message waits that cannot be opened now.
const (
	keyWait  = 30 * time.Second // its key is not here
	deadWait = 15 * time.Minute // it is to be a dead letter, and the engine behind has no place for it
)

// Receive hands out what opens. What does not is settled here.
func (e *Engine) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	ds, err := e.inner.Receive(ctx, r)
	if err != nil || len(ds) == 0 {
		return ds, err
	}
	out := ds[:0]
	var refused []forebay.Settlement
	for i := range ds {
		d := ds[i]
		if err := e.openMessage(ctx, &d.Message); err != nil {
			refused = append(refused, e.refuse(&d, err))
			continue
		}
		d.Failures = e.sealer.openCauses(ctx, place{queue: d.Queue, id: d.ID}, d.Failures)
		if e.seals(d.Queue) {
			d.Receipt = e.sealer.marked(d.Receipt, d.Queue, d.ID)
		}
		out = append(out, d)
	}
	if len(refused) > 0 {
		e.settleRefused(ctx, refused)
	}
	return out, nil
}

// refuse is how the delivery of a message ends that does not open.
func (e *Engine) refuse(d *forebay.Delivery, err error) forebay.Settlement {
	if unless(err) == nil && forebay.CodeOf(err) == forebay.CodeDamaged {
		e.log.Error("a message was changed where it is stored, and is a dead letter now", "queue", d.Queue, "id", d.ID, "error", err)
		return forebay.Settlement{
			Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Dead, Unbegun: true,
			Cause: forebay.Cause{Code: "tampered", Message: forebay.TextOf(err), At: e.now()},
		}
	}
	e.mu.Lock()
	again := e.waiting == err.Error() && e.now().Sub(e.since) < troubled
	e.waiting, e.since = err.Error(), e.now()
	e.mu.Unlock()
	if !again {
		e.log.Error("messages cannot be opened, and wait", "queue", d.Queue, "id", d.ID, "error", err)
	}
	return forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Release, After: keyWait}
}

// settleRefused ends deliveries. One that cannot be ended comes again when its lease ends.
func (e *Engine) settleRefused(ctx context.Context, ss []forebay.Settlement) {
	errs, err := e.inner.Settle(context.WithoutCancel(ctx), ss)
	var later []forebay.Settlement
	for i := range errs {
		if forebay.CodeOf(errs[i]) == forebay.CodeUnsupported {
			later = append(later, forebay.Settlement{Receipt: ss[i].Receipt, Queue: ss[i].Queue, Verdict: forebay.Release, After: deadWait})
		}
	}
	if err == nil && len(later) > 0 {
		_, err = e.inner.Settle(context.WithoutCancel(ctx), later)
	}
	if err != nil {
		e.log.Warn("what cannot be opened could not be settled; it comes again", "messages", len(ss), "error", err)
	}
}

// Extend goes by the receipts of the engine behind.
func (e *Engine) Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	return e.inner.Extend(ctx, e.sealer.bareAll(receipts), lease)
}

// Settle seals results, causes and what follows.
func (e *Engine) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	out := make([]forebay.Settlement, 0, len(ss))
	errs := make([]error, len(ss))
	for i := range ss {
		s := ss[i]
		if errs[i] = e.settlement(&s); errs[i] == nil {
			out = append(out, s)
		}
	}
	told, err := e.inner.Settle(ctx, out)
	if err != nil {
		return nil, err
	}
	for i := range errs {
		if errs[i] == nil {
			errs[i], told = told[0], told[1:]
		}
	}
	return errs, nil
}

// settlement seals what one says.
func (e *Engine) settlement(s *forebay.Settlement) error {
	var p place
	s.Receipt, p = e.sealer.bare(s.Receipt)
	if p.bound == flagUnbound {
		p.queue = s.Queue
	}
	if e.seals(p.queue) {
		s.Cause = e.sealer.cause(p, s.Cause)
		if len(s.Result) > 0 && engine.CheckResult(s.Result) == nil { // else the engine behind refuses it
			p.what = isResult
			result := e.sealer.value(p, s.Result, forebay.MaxResultBytes)
			if result == nil {
				err := forebay.Errorf(forebay.CodeTooLarge, "", "the result has %d bytes and cannot be compressed; with encryption about three quarters of %d are allowed", len(s.Result), forebay.MaxResultBytes)
				err.Field = "result"
				return err
			}
			s.Result = result
		}
	}
	if len(s.Next) == 0 {
		return nil
	}
	next, refused := e.sealAll(s.Next)
	s.Next = next
	return errors.Join(refused...)
}
