package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/internal/schema"
)

// Collections of documents.
const (
	collectionFlow   = "flow"         // name/version: the file
	collectionLatest = "flow-latest"  // name: the number of its newest version
	collectionNote   = "flow-release" // name/version: who stored it, and who approved it
	collectionRun    = "flow-run"     // id: its state
	collectionWait   = "flow-wait"    // event|job: who waits for it
	collectionAnswer = "flow-answer"  // job of a wait: what has come first
)

// version of a flow, as it is used.
type version struct {
	plan   *flow.Plan
	schema *schema.Schema // of the input; nil: anything
	source []byte
}

// Put stores a flow as its next version, or tells the latest where that says the
// same. Problems that are more than warnings refuse it, with a nil error. A file that
// differs in its layout only takes the place of the latest: what runs is the same.
func (r *Runner) Put(ctx context.Context, src []byte, known flow.Known) (int, flow.Problems, error) {
	return r.PutBy(ctx, src, known, Release{})
}

// PutBy is Put that notes who stores it, and why.
func (r *Runner) PutBy(ctx context.Context, src []byte, known flow.Known, by Release) (int, flow.Problems, error) {
	plan, problems := flow.Load(src, known)
	if plan == nil {
		return 0, problems, nil
	}
	if _, err := schema.Compile(plan.Input); err != nil {
		return 0, append(problems, flow.Problem{Code: flow.CodeSchema, Path: "input", Text: "input is no JSON Schema: " + err.Error()}), nil
	}
	for range maxTries {
		latest, rev, err := r.latest(ctx, plan.Name)
		if err != nil {
			return 0, problems, err
		}
		if latest > 0 {
			v, err := r.version(ctx, plan.Name, latest)
			if err == nil && bytes.Equal(v.source, src) {
				return latest, problems, nil
			} else if err == nil && flow.SameButLayout(v.source, src) {
				return latest, problems, r.redraw(ctx, plan.Name, latest, src)
			}
		}
		// The file first: a number without one would be worse than one that is unused.
		d := engine.Document{Collection: collectionFlow, Key: fileKey(plan.Name, latest+1), Value: src, Rev: engine.AnyRev}
		if rev > 0 || latest == 0 {
			d.Rev = 0
		}
		stored, err := r.b.PutDocument(ctx, d)
		if forebay.CodeOf(err) == forebay.CodeConflict && bytes.Equal(stored.Value, src) {
			err = nil // ours, of a try that went no further
		} else if forebay.CodeOf(err) == forebay.CodeConflict { // somebody else's: its number is theirs
			err = r.number(ctx, plan.Name, latest+1, rev)
			if err == nil || forebay.CodeOf(err) == forebay.CodeConflict {
				continue
			}
		}
		if err == nil {
			err = r.note(ctx, plan.Name, latest+1, Release{Author: by.Author, At: r.cfg.Now(), Reason: by.Reason})
		}
		if err == nil {
			err = r.number(ctx, plan.Name, latest+1, rev)
		}
		if forebay.CodeOf(err) == forebay.CodeConflict {
			continue
		}
		return latest + 1, problems, err
	}
	return 0, problems, conflict("the flow %s was stored by others again and again", plan.Name)
}

// redraw stores a file that only draws a version otherwise.
func (r *Runner) redraw(ctx context.Context, name string, number int, src []byte) error {
	_, err := r.b.PutDocument(ctx, engine.Document{Collection: collectionFlow, Key: fileKey(name, number), Value: src, Rev: engine.AnyRev})
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.plans, planKey{name, number})
	return err
}

func (r *Runner) number(ctx context.Context, name string, n int, rev int64) error {
	_, err := r.b.PutDocument(ctx, engine.Document{Collection: collectionLatest, Key: name, Value: []byte(strconv.Itoa(n)), Rev: rev})
	return err
}

func fileKey(name string, version int) string { return fmt.Sprintf("%s/%010d", name, version) }

// latest version of a flow; 0: there is none.
func (r *Runner) latest(ctx context.Context, name string) (int, int64, error) {
	d, err := r.b.Document(ctx, collectionLatest, name)
	if missing(err) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	n, err := strconv.Atoi(string(d.Value))
	if err != nil {
		return 0, 0, forebay.Errorf(forebay.CodeDamaged, "runner: latest", "the version of %s is %q", name, d.Value)
	}
	return n, d.Rev, nil
}

// Source gives the file of a version, 0 for the latest, and its number.
func (r *Runner) Source(ctx context.Context, name string, number int) ([]byte, int, error) {
	number, err := r.resolve(ctx, name, number)
	if err != nil {
		return nil, 0, err
	}
	v, err := r.version(ctx, name, number)
	if err != nil {
		return nil, 0, err
	}
	return v.source, number, nil
}

// Flows lists the names of flows after one, and their latest versions.
func (r *Runner) Flows(ctx context.Context, after string, limit int) (names []string, versions []int, err error) {
	docs, err := r.b.Documents(ctx, collectionLatest, after, limit)
	for _, d := range docs {
		n, _ := strconv.Atoi(string(d.Value))
		names, versions = append(names, d.Key), append(versions, n)
	}
	return names, versions, err
}

func (r *Runner) resolve(ctx context.Context, name string, number int) (int, error) {
	if number > 0 {
		return number, nil
	}
	number, _, err := r.latest(ctx, name)
	if err == nil && number == 0 {
		err = notFound("there is no flow %q", name)
	}
	return number, err
}

// version is immutable once it is stored, so it is kept in memory.
func (r *Runner) version(ctx context.Context, name string, number int) (*version, error) {
	key := planKey{name, number}
	r.mu.Lock()
	v := r.plans[key]
	r.mu.Unlock()
	if v != nil {
		return v, nil
	}
	d, err := r.b.Document(ctx, collectionFlow, fileKey(name, number))
	if missing(err) {
		return nil, notFound("the flow %s has no version %d", name, number)
	}
	if err != nil {
		return nil, err
	}
	plan, problems := flow.Load(d.Value, flow.Known{})
	if plan == nil {
		return nil, forebay.Errorf(forebay.CodeDamaged, "runner: load", "version %d of the flow %s is not sound any more: %w", number, name, problems)
	}
	plan.Version = number
	compiled, err := schema.Compile(plan.Input)
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeDamaged, "runner: load", "the input's schema of %s: %w", name, err)
	}
	v = &version{plan: plan, schema: compiled, source: d.Value}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.plans) >= maxPlans {
		clear(r.plans)
	}
	r.plans[key] = v
	return v, nil
}

// state of a run, as it is stored.
type state struct {
	*flow.Run
	rev int64
}

// parent is the step of another run whose sub-flow a run is.
type parent struct {
	Run   string `json:"run"`
	Step  string `json:"step"`
	Round int    `json:"round,omitempty"`
	Item  int    `json:"item"`
}

// load reads a run with its plan and input.
func (r *Runner) load(ctx context.Context, id string) (*state, *version, *flow.Input, error) {
	d, err := r.b.Document(ctx, collectionRun, id)
	if missing(err) {
		return nil, nil, nil, notFound("there is no run %q", id)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	s := &state{rev: d.Rev}
	if err := json.Unmarshal(d.Value, s); err != nil || s.Run == nil {
		return nil, nil, nil, forebay.Errorf(forebay.CodeDamaged, "runner: load", "the state of the run %s is not readable: %w", id, err)
	}
	v, err := r.version(ctx, s.Flow, s.Version)
	if err != nil {
		return nil, nil, nil, err
	}
	input, err := r.input(ctx, id)
	return s, v, input, err
}

// input is the payload of the run's job, which does not change.
func (r *Runner) input(ctx context.Context, id string) (*flow.Input, error) {
	r.mu.Lock()
	in := r.inputs[id]
	r.mu.Unlock()
	if in != nil {
		return in, nil
	}
	j, err := r.b.Job(ctx, id)
	if missing(err) {
		return flow.NewInput(nil), nil // the record has left by its retention; the state is kept longer
	}
	if err != nil {
		return nil, err
	}
	return r.keepInput(id, j.Payload), nil
}

func (r *Runner) keepInput(id string, raw []byte) *flow.Input {
	in := flow.NewInput(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.inputs) >= maxInputs {
		clear(r.inputs)
	}
	r.inputs[id] = in
	return in
}

func (r *Runner) forgetInput(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inputs, id)
}

// save stores a run, if nobody else has meanwhile.
func (r *Runner) save(ctx context.Context, s *state) error {
	value, err := json.Marshal(s)
	if err != nil {
		return forebay.Errorf(forebay.CodeInternal, "runner: save", "%w", err)
	}
	d := engine.Document{Collection: collectionRun, Key: s.ID, Value: value, Rev: s.rev}
	if s.State.Final() {
		d.Expires = r.cfg.Now().Add(r.cfg.Keep)
	}
	d, err = r.b.PutDocument(ctx, d)
	s.rev = d.Rev
	return err
}
