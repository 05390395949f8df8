package runner

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/internal/schema"
)

// Approval is somebody's word on a step that waits for it.
type Approval struct {
	Approved bool            `json:"approved"`
	By       string          `json:"by"`
	Comment  string          `json:"comment,omitempty"`
	Form     json.RawMessage `json:"form,omitempty"`
}

// Approve answers a step that waits for an approval; it is that step's output. Where
// it is not approved, the step fails with the code "rejected". Who may say so is the
// caller's business: Approvers tells. The first answer counts.
func (r *Runner) Approve(ctx context.Context, run, step string, a Approval) error {
	s, v, _, err := r.load(ctx, run)
	if err != nil {
		return err
	}
	d, ok := v.plan.Step(step)
	if !ok || !d.Wait.Approval {
		return notFound("the run %s has no step %q that waits for an approval", run, step)
	}
	st := s.Steps[step]
	if st.State != flow.StepSent {
		return conflict("the step %s is %s; it waits for no approval now", step, st.State)
	}
	if len(a.Form) > 0 && !json.Valid(a.Form) {
		return wrong("form", "the form is not JSON")
	}
	compiled, err := schema.Compile(d.Wait.Form)
	if err != nil {
		return err
	}
	if form := (&version{schema: compiled}); compiled != nil && a.Approved {
		if err := form.checkInput(a.Form); err != nil {
			return err
		}
	}
	return r.arrive(ctx, flow.JobID(run, step, st.Round, flow.NoItem, false), arrival{Approval: &a})
}

// Approvers tells who may answer a step of a run; none: whoever may act, or it waits for
// no approval.
func (r *Runner) Approvers(ctx context.Context, run, step string) ([]string, error) {
	_, v, _, err := r.load(ctx, run)
	if err != nil {
		return nil, err
	}
	d, ok := v.plan.Step(step)
	if !ok {
		return nil, nil // to act on it will tell
	}
	return d.Wait.By, nil
}

// arrive gives a wait what it waits for, and lets it go on. What came first counts, and
// whoever comes later is told (CodeConflict); he also lets the wait go on, in case that
// the first was killed before he could.
func (r *Runner) arrive(ctx context.Context, job string, a arrival) error {
	payload, err := json.Marshal(a)
	if err != nil {
		return wrong("payload", "it is not JSON: %v", err)
	}
	now := r.cfg.Now()
	first, err := r.b.PutDocument(ctx, engine.Document{Collection: collectionAnswer, Key: job, Value: payload, Expires: now.Add(r.cfg.Keep)})
	late := forebay.CodeOf(err) == forebay.CodeConflict
	if err != nil && !late {
		return err
	}
	if late {
		payload = first.Value
	}
	errs, err := r.b.Change(ctx, []engine.JobChange{{ID: job, Payload: payload, Due: &now}})
	if err == nil {
		err = errs[0]
	}
	if err == nil && late {
		err = conflict("it has had its answer")
	}
	return err
}

// Event tells all runs that wait for it of an event, and how many that were. Events
// that come before a run waits for them do not count for it.
func (r *Runner) Event(ctx context.Context, event string, payload json.RawMessage) (told int, err error) {
	if len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	if !json.Valid(payload) {
		return 0, wrong("payload", "the event is not JSON")
	}
	prefix := event + "|"
	for after := prefix; ; {
		docs, err := r.b.Documents(ctx, collectionWait, after, 100)
		if err != nil {
			return told, err
		}
		for _, d := range docs {
			if !strings.HasPrefix(d.Key, prefix) {
				return told, nil
			}
			ok, err := r.offer(ctx, d.Key[len(prefix):], event, payload)
			if err != nil {
				return told, err
			}
			if ok {
				told++
			}
			after = d.Key
		}
		if len(docs) == 0 {
			return told, nil
		}
	}
}

func waitKey(event, job string) string { return event + "|" + job }

// offer gives an event to a step that may wait for it.
func (r *Runner) offer(ctx context.Context, job, event string, payload json.RawMessage) (bool, error) {
	run, step, round, _, _, ok := flow.ParseJobID(job)
	if !ok {
		return false, nil // the key of another event, whose type begins like this one
	}
	s, v, input, err := r.load(ctx, run)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if st := s.Steps[step]; st == nil || st.Round != round {
		return false, nil
	}
	matches, err := v.plan.Matches(s.Run, input, step, event, payload)
	if err != nil || !matches {
		if err != nil { // this event has not what the match looks for
			r.log.Info("an event does not fit the match of a step", "run", run, "step", step, "event", event, "error", err)
		}
		return false, nil
	}
	err = r.arrive(ctx, job, arrival{Event: payload})
	if missing(err) || forebay.CodeOf(err) == forebay.CodeConflict { // it has had one
		return false, nil
	}
	return err == nil, err
}
