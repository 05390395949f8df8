package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// drain is the first phase: nothing more comes in, nothing more begins.
func (l *loop) drain() {
	if l.draining {
		return
	}
	l.draining = true
	close(l.drained)
	l.stop()
	unbegun := l.dispatch.drop()
	l.release(unbegun)
	l.w.log.Info("draining", "handlers", len(l.running), "released", len(unbegun))
}

// interrupt ends the handlers' contexts and gives them a little time.
func (l *loop) interrupt() {
	if len(l.running) > 0 {
		l.w.log.Warn("handlers are interrupted", "handlers", len(l.running))
	}
	l.cancel(forebay.ErrDraining)
	l.deadline = time.After(grace)
}

// leaveBehind gives up on handlers that ignore their context.
func (l *loop) leaveBehind() (hung []*work) {
	for k := range l.running {
		hung = append(hung, k)
		k.clock.stop()
		switch cause := context.Cause(k.ctx); {
		case k.left: // it has its verdict
		case ends(cause):
			l.leave(k)
		default:
			endings := make([]ending, len(k.items))
			for i, it := range k.items {
				endings[i] = release(it)
			}
			l.settler.add(endings)
		}
	}
	return hung
}

// verdict is what Run returns.
func (l *loop) verdict(hung []*work, unstored int) error {
	var problems []error
	if l.fatal != nil {
		problems = append(problems, l.fatal)
	}
	if len(hung) > 0 {
		var ids []string
		for _, k := range hung {
			ids = append(ids, fmt.Sprintf("%s (%d in its call, %s)", k.items[0].d.ID, len(k.items), time.Since(k.began).Round(time.Second)))
		}
		slices.Sort(ids)
		problems = append(problems, forebay.Errorf(forebay.CodeInternal, "worker: drain",
			"%d handlers did not return %s after their context had ended; they hold %s",
			len(hung), grace, strings.Join(ids[:min(len(ids), 5)], ", ")))
	} else if l.asking {
		problems = append(problems, forebay.Errorf(forebay.CodeInternal, "worker: drain",
			"the engine did not return from a receive %s after its context had ended", grace))
	}
	if unstored > 0 {
		problems = append(problems, forebay.Errorf(forebay.CodeUnavailable, "worker: drain",
			"%d verdicts could not be stored; their messages come again when their leases end", unstored))
	}
	return errors.Join(problems...)
}
