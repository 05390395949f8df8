package schedule

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
)

// send sends all that is pending, in parts.
func (s *Scheduler) send(ctx context.Context, works []*work) {
	var p part
	for _, w := range works {
		if w.err != nil {
			continue
		}
		for _, one := range w.state.Pending {
			if w.resend && !s.sure(ctx, w, one) {
				continue
			}
			if one.Cancel != "" {
				if err := s.cancelFormer(ctx, one); err != nil {
					w.err = err
					break
				}
			}
			m := w.plan.message(one.Job, one.Tick, s.now())
			if p.full(&m) {
				s.sendPart(ctx, &p)
			}
			p.add(w, one, m)
		}
	}
	s.sendPart(ctx, &p)
}

// sure tells whether to send what was decided before; if not, it says what became of it.
func (s *Scheduler) sure(ctx context.Context, w *work, one Pending) bool {
	age := s.now().Sub(one.At)
	if age.Abs() < sureWindow {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := s.broker.Job(ctx, one.Job)
	switch forebay.CodeOf(err) {
	case "":
		w.outcomes = append(w.outcomes, sent{Pending: one})
	case forebay.CodeNotFound:
		reason := fmt.Sprintf("it was decided %s ago, and may have been run then", age.Truncate(time.Second))
		w.outcomes = append(w.outcomes, sent{one, SkipUnsure, reason})
	default:
		w.err = err
	}
	return false
}

func (s *Scheduler) cancelFormer(ctx context.Context, one Pending) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	results, err := s.broker.Cancel(ctx, []string{one.Cancel}, "its schedule goes on with "+one.Job)
	if err == nil {
		err = results[0].Err
	}
	switch forebay.CodeOf(err) {
	case forebay.CodeConflict, forebay.CodeNotFound: // it has finished
		return nil
	}
	return err
}

// part is what one call sends.
type part struct {
	works []*work
	ones  []Pending
	msgs  []forebay.Message
	bytes int
}

func (p *part) full(next *forebay.Message) bool {
	return len(p.msgs) == sendSize || len(p.msgs) > 0 && p.bytes+len(next.Payload) > sendBytes
}

func (p *part) add(w *work, one Pending, m forebay.Message) {
	p.works, p.ones, p.msgs = append(p.works, w), append(p.ones, one), append(p.msgs, m)
	p.bytes += len(m.Payload)
}

func (s *Scheduler) sendPart(ctx context.Context, p *part) {
	if len(p.msgs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	results, err := s.broker.Send(ctx, p.msgs)
	for i, w := range p.works {
		one := err
		var r forebay.SendResult
		if one == nil {
			r = results[i]
			one = r.Err
		}
		switch code := forebay.CodeOf(one); code {
		case "":
			o := sent{Pending: p.ones[i]}
			if r.Duplicate && !w.resend {
				o.code, o.reason = SkipExists, "there is a job "+r.ID+" already, of a former schedule of this name"
			}
			w.outcomes = append(w.outcomes, o)
		case forebay.CodeInvalid, forebay.CodeTooLarge, forebay.CodeUnsupported:
			w.outcomes = append(w.outcomes, sent{p.ones[i], string(code), one.Error()})
		default:
			w.err = cmp.Or(w.err, one)
		}
	}
	*p = part{}
}
