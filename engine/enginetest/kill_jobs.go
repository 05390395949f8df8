package enginetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// jobs compares the ledger with the record, for some ids.
func (k *killer) jobs(e engine.Engine, ids []string) error {
	ledger, ok := engine.As[engine.Jobs](e)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, id := range ids {
		j, err := ledger.Job(ctx, id)
		switch {
		case !killJob(id):
			if forebay.CodeOf(err) != forebay.CodeNotFound {
				return fmt.Errorf("message %q is no job, and the ledger tells %+v, %v", id, j, err)
			}
		case err != nil:
			return fmt.Errorf("job %q was acknowledged as sent: %w", id, err)
		default:
			if err := k.record.told(&j); err != nil {
				return err
			}
		}
	}
	return nil
}

var killStates = map[forebay.State]string{
	forebay.StateCompleted: "ack", forebay.StateDead: "dead", forebay.StateCancelled: "cancelled",
}

// told holds what the ledger tells of a job against what is known of it.
func (r *killRecord) told(j *forebay.Job) error {
	m := r.messages[j.ID]
	end := killStates[j.State]
	switch {
	case m.ended != "" && end != m.ended:
		return fmt.Errorf("the %s of job %q was acknowledged, and the ledger says %s", m.ended, j.ID, j.State)
	case m.ended == "" && end != "" && m.trying[end] == 0:
		return fmt.Errorf("job %q is %s, and nobody tried that", j.ID, j.State)
	case end == "ack" && string(j.Result) != killResult(j.ID) && !strings.HasPrefix(m.batch, "end"):
		return fmt.Errorf("job %q is completed with the result %q", j.ID, j.Result)
	case end == "" && j.State != forebay.StateWaiting && (j.State != forebay.StateActive || !r.keeps): // killer.held judges those that are
		return fmt.Errorf("job %q is %s after the opening", j.ID, j.State)
	case end == "dead" && j.DeadSeq == 0:
		return fmt.Errorf("job %q is dead, and no dead letter", j.ID)
	}
	failed := j.Attempts
	if end == "dead" {
		failed--
	}
	if failed < m.attempts || failed > m.attempts+m.maybe {
		return fmt.Errorf("job %q has failed %d times by the ledger, %d to %d are known", j.ID, failed, m.attempts, m.attempts+m.maybe)
	}
	return nil
}

// killStory is what the history tells of a job.
type killStory struct {
	added, retries int
	end            forebay.State
}

// history holds all of the history against itself and against the ledger.
func (k *killer) history(e engine.Engine) error {
	h, ok := engine.As[engine.History](e)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	stories := make(map[string]*killStory)
	for q := (engine.HistoryQuery{}); ; {
		page, err := h.History(ctx, q)
		if err != nil {
			return err
		}
		for _, ev := range page.Events {
			if ev.Seq <= q.After {
				return fmt.Errorf("event %+v comes after place %d", ev, q.After)
			}
			q.After = ev.Seq
			if stories[ev.Job] == nil {
				stories[ev.Job] = &killStory{}
			}
			if err := stories[ev.Job].event(ev); err != nil {
				return err
			}
		}
		if q.After = page.Next; !page.More {
			break
		}
	}
	for _, id := range k.record.known {
		if !killJob(id) {
			continue
		}
		if err := k.agrees(ctx, e, id, stories[id]); err != nil {
			return err
		}
	}
	return nil
}

// event takes in one event and says what is wrong with it.
func (s *killStory) event(ev forebay.HistoryEvent) error {
	if s.end != "" {
		return fmt.Errorf("job %q was %s, and then there is %+v", ev.Job, s.end, ev)
	}
	switch ev.Type {
	case forebay.HistoryAdded:
		s.added++
	case forebay.HistoryRetry:
		s.retries++
	}
	if s.added != 1 {
		return fmt.Errorf("job %q was added %d times before %+v", ev.Job, s.added, ev)
	}
	if ev.State.Final() {
		s.end = ev.State
	}
	return nil
}

func (k *killer) agrees(ctx context.Context, e engine.Engine, id string, s *killStory) error {
	ledger, _ := engine.As[engine.Jobs](e)
	j, err := ledger.Job(ctx, id)
	if err != nil {
		return fmt.Errorf("job %q: %w", id, err)
	}
	if s == nil {
		return fmt.Errorf("job %q was acknowledged as sent, and has no history", id)
	}
	failed := j.Attempts
	if j.State == forebay.StateDead {
		failed--
	}
	if s.end != j.State || s.retries != failed {
		return fmt.Errorf("job %q is %s after %d failures by the ledger, %q after %d by the history", id, j.State, failed, s.end, s.retries)
	}
	return nil
}
