package runner

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
)

// Start is a run that is wanted.
type Start struct {
	Flow    string
	Version int             // 0: the latest
	Input   json.RawMessage // empty: null
	ID      string          // of the run: a second Start with it is the same; empty: a new one
	Owner   string
	Tenant  string
	Tags    []string
}

// Started is what became of a Start.
type Started struct {
	Run       string
	Version   int
	Duplicate bool // there was a run of this id
}

// Start begins a run. It is durable when it returns.
func (r *Runner) Start(ctx context.Context, st Start) (Started, error) {
	number, err := r.released(ctx, st.Flow, st.Version)
	if err != nil {
		return Started{}, err
	}
	v, err := r.version(ctx, st.Flow, number)
	if err != nil {
		return Started{}, err
	}
	if len(st.Input) == 0 {
		st.Input = json.RawMessage("null")
	}
	if err := v.checkInput(st.Input); err != nil {
		return Started{}, err
	}
	if st.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return Started{}, forebay.Errorf(forebay.CodeInternal, "runner: start", "%w", err)
		}
		st.ID = id.String()
	}
	if err := CheckRunID(st.ID); err != nil {
		return Started{}, err
	}
	msgs := []forebay.Message{{
		ID: st.ID, Queue: r.cfg.Queue, Kind: KindRun, Payload: st.Input,
		Headers: map[string]string{HeaderFlow: st.Flow, HeaderVersion: strconv.Itoa(number)},
		Job:     &forebay.JobOptions{Owner: st.Owner, Tenant: st.Tenant, Tags: append([]string{tagOf(st.Flow)}, st.Tags...)},
	}}
	now := r.cfg.Now()
	msgs[0].NotBefore = now.Add(r.firstLook(v)) // the run's job looks after it, later
	c, first := r.beginChain(st.ID, v, st.Input, now)
	if first == nil {
		begin, err := r.advanceMessage(st.ID, advance{Begin: true})
		if err != nil {
			return Started{}, err
		}
		msgs = append(msgs, begin)
	} else {
		msgs[0].Headers[headerChain] = "1"
		msgs = append(msgs, *first)
		r.remember(c)
	}
	results, err := r.b.Send(ctx, msgs)
	if err == nil {
		err = results[0].Err
	}
	if err != nil || results[0].Duplicate {
		r.take(st.ID)
	}
	if err != nil {
		return Started{}, err
	}
	return Started{Run: st.ID, Version: number, Duplicate: results[0].Duplicate}, nil
}

func (r *Runner) firstLook(v *version) time.Duration {
	if limit := v.plan.Timeout; limit > 0 {
		return min(limit, r.cfg.Watch)
	}
	return r.cfg.Watch
}

// CheckRunID looks at the id of a run.
func CheckRunID(id string) error {
	if id == "" || len(id) > flow.MaxRunBytes {
		return wrong("id", "the run's id has %d bytes; 1 to %d are allowed", len(id), flow.MaxRunBytes)
	}
	for _, c := range id {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-_.:", c)) {
			return wrong("id", "the run's id %q has %q; A-Z a-z 0-9 - _ . : are allowed", id, c)
		}
	}
	return nil
}

// View is a run as it is now.
type View struct {
	flow.Run
	Input   json.RawMessage `json:"input"`
	Waiting []flow.Reason   `json:"waiting,omitempty"` // what it waits for
}

// Get tells how a run is. CodeNotFound: there is none, or its state has left.
func (r *Runner) Get(ctx context.Context, id string) (View, error) {
	s, v, input, err := r.load(ctx, id)
	if err == nil {
		return View{Run: *s.Run, Input: input.Raw(), Waiting: v.plan.Waiting(s.Run)}, nil
	}
	if !missing(err) {
		return View{}, err
	}
	j, none := r.b.Job(ctx, id)
	if none != nil || j.Kind != KindRun {
		return View{}, err
	}
	name, number := flowOf(&j.Message)
	if v, err = r.version(ctx, name, number); err != nil {
		return View{}, err
	}
	s, input = &state{Run: v.plan.Begin(id, j.SentAt)}, flow.NewInput(j.Payload)
	if j.State == forebay.StateCancelled {
		s.State = flow.RunCancelled
	} else if _, err := r.recover(ctx, s, v, input); err != nil { // what it asks for is others' to do
		return View{}, err
	}
	return View{Run: *s.Run, Input: j.Payload, Waiting: v.plan.Waiting(s.Run)}, nil
}

// Do gives a run a command. It is checked at once, and done in the run's own order:
// what others do meanwhile may make it mean nothing any more.
func (r *Runner) Do(ctx context.Context, id string, c flow.Command) error {
	s, v, input, err := r.load(ctx, id)
	if missing(err) { // it has no state yet: only that it is there can be checked
		j, none := r.b.Job(ctx, id)
		if none != nil || j.Kind != KindRun || j.State.Final() {
			return err
		}
		return r.command(ctx, id, c)
	}
	if err != nil {
		return err
	}
	if c.Do == flow.DoExpire {
		return wrong("do", "a run expires by itself; cancel ends it")
	}
	if s.State.Final() && c.Do == flow.DoRetry {
		j, err := r.b.Job(ctx, id)
		if err != nil {
			return err
		}
		if j.State.Final() && j.State != forebay.StateDead {
			return conflict("the run is %s; only one that has failed can go on. Start a new one with its input", s.State)
		}
	}
	if _, err := v.plan.Command(s.Run, input, c); err != nil { // on a copy
		return err
	}
	return r.command(ctx, id, c)
}

func (r *Runner) command(ctx context.Context, id string, c flow.Command) error {
	return r.tell(ctx, id, advance{Command: &c})
}

// tell sends an advance.
func (r *Runner) tell(ctx context.Context, run string, a advance) error {
	m, err := r.advanceMessage(run, a)
	if err != nil {
		return err
	}
	results, err := r.b.Send(ctx, []forebay.Message{m})
	if err == nil {
		err = results[0].Err
	}
	return err
}
