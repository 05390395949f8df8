package enginetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Kept leases under SIGKILL: a child says of each message which receipt holds it until
// when, and so it must be when the store is opened again.

func keptFact(d forebay.Delivery) string {
	return fmt.Sprintf("keep %s %d %s", d.Receipt, d.LeaseUntil.UnixNano(), d.ID)
}

// keep takes in that a message is held: receipt, end, id.
func (m *killMessage) keep(words []string) error {
	if len(words) != 3 {
		return fmt.Errorf("no such fact: keep %q", words)
	}
	until, err := strconv.ParseInt(words[1], 10, 64)
	m.receipt, m.until = forebay.Receipt(words[0]), time.Unix(0, until)
	return err
}

// prolong extends a kept lease by a second. The record knows the end that is before
// that, so it does not matter whether it hears of it.
func (c *child) prolong(ds []forebay.Delivery) error {
	if len(ds) == 0 {
		return nil
	}
	errs, err := c.e.Extend(c.ctx, receiptsOf(ds[:1]), killKept+time.Second)
	return errors.Join(append(errs, err)...)
}

// held wants what is surely under a kept lease to be active, and acks about half of it
// by the receipts of the process that was killed.
func (k *killer) held(e engine.Engine) error {
	if !k.cfg.Keeps {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, m := range k.record.held() {
		if where, err := locate(ctx, e, m.id); err != nil || where != engine.WhereActive && time.Now().Before(m.until) {
			return fmt.Errorf("%q is %s, %v; it is under a kept lease until %v", m.id, where, err, m.until)
		}
		if k.rng.IntN(2) == 0 {
			continue
		}
		receipt := m.receipt
		if err := k.record.fact("try ack " + m.id); err != nil {
			return err
		}
		s := forebay.Settlement{Receipt: receipt, Verdict: forebay.Ack}
		if killJob(m.id) {
			s.Result = []byte(killResult(m.id))
		}
		errs, err := e.Settle(ctx, []forebay.Settlement{s})
		switch {
		case err != nil:
			return err
		case errs[0] == nil:
			k.record.late++
			err = k.record.fact("did ack " + m.id)
		case time.Now().Before(m.until):
			err = fmt.Errorf("ack of %q, which is under a kept lease until %v: %w", m.id, m.until, errs[0])
		default:
			err = k.record.fact("lost ack " + m.id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func locate(ctx context.Context, e engine.Engine, id string) (engine.Where, error) {
	l, ok := engine.As[engine.Locator](e)
	if !ok {
		return engine.WhereActive, nil // the receipts will tell
	}
	at, err := l.Locate(ctx, id)
	return at.Where, err
}

// left tells whether anything is there. What was under a kept lease at the last look may
// wait by now.
func (k *killer) left(ctx context.Context, e engine.Engine) bool {
	k.t.Helper()
	s, err := e.Stats(ctx, testQueue)
	if err != nil {
		k.t.Fatal(err)
	}
	return s[0].Waiting+s[0].Delayed+s[0].Active > 0
}

// held gives what is surely under a kept lease.
func (r *killRecord) held() (all []*killMessage) {
	for _, m := range r.messages {
		if m.receipt != "" && m.ended == "" && time.Now().Before(m.until) {
			all = append(all, m)
		}
	}
	return all
}
