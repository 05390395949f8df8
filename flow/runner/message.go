package runner

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
)

// Kinds of what is in the queue of flows.
const (
	KindRun     = "flow.run"
	KindAdvance = "flow.advance"
	KindDelay   = "flow.delay"
	KindWait    = "flow.wait"
	KindDead    = "flow.dead_letter"
)

// Headers of the jobs of a run.
const (
	HeaderFlow    = "flow"
	HeaderVersion = "flow-version"
	HeaderRun     = "flow-run"
	HeaderStep    = "flow-step"
	HeaderRound   = "flow-round"
	HeaderItem    = "flow-item"
	HeaderUndo    = "flow-undo"
	HeaderFailure = "flow-on-failure"

	headerParent = "flow-parent" // of the job of a sub-flow's run: whose
	headerChain  = "flow-chain"  // of the job of a run: its steps may have gone on without a state
)

// advance is the payload of an advance message.
type advance struct {
	Begin   bool          `json:"begin,omitempty"`
	Events  []flow.Event  `json:"events,omitempty"`
	Command *flow.Command `json:"command,omitempty"`
	Lost    []string      `json:"lost,omitempty"` // ids of jobs that the store does not have
}

// advanceMessage decides about a run, after those that were sent before it.
func (r *Runner) advanceMessage(run string, a advance) (forebay.Message, error) {
	payload, err := json.Marshal(a)
	if err != nil {
		return forebay.Message{}, forebay.Errorf(forebay.CodeInternal, "runner: advance", "%w", err)
	}
	return forebay.Message{
		Queue: r.AdvanceQueue(), Kind: KindAdvance, Payload: payload, Group: run,
		Limits: forebay.Limits{Attempts: 1000, Deliveries: 10_000}, Headers: map[string]string{HeaderRun: run},
	}, nil
}

// message makes the job of a decision.
func (r *Runner) message(s *state, v *version, d *flow.Send, now time.Time) forebay.Message {
	m := forebay.Message{
		ID: d.ID, Queue: d.Queue, Kind: d.Use, Payload: d.Payload, Group: d.Group, LimitKey: d.LimitKey,
		Limits: forebay.Limits{Attempts: d.Retry.Attempts},
		Headers: map[string]string{
			HeaderFlow: s.Flow, HeaderVersion: strconv.Itoa(s.Version), HeaderRun: s.ID, HeaderStep: d.Step, HeaderRound: strconv.Itoa(d.Round),
		},
	}
	if m.Queue == "" {
		m.Queue = flow.DefaultQueue
	}
	if d.Priority != nil {
		m.Priority = forebay.At(*d.Priority)
	}
	if d.Item >= 0 {
		m.Headers[HeaderItem] = strconv.Itoa(d.Item)
	} else if step, ok := v.plan.Step(d.Step); ok && step.OnFailure.Mode == flow.Skip && !d.Undo {
		m.Headers[HeaderFailure] = string(flow.Skip)
	}
	if d.Undo {
		m.Headers[HeaderUndo] = "1"
	}
	m.Job = &forebay.JobOptions{Timeout: d.Timeout, Backoff: d.Retry.Backoff, Parent: s.ID, Tags: []string{tagOf(s.Flow)}}
	r.control(&m, s, d, now)
	return m
}

// control is for steps that no handler of a user does.
func (r *Runner) control(m *forebay.Message, s *state, d *flow.Send, now time.Time) {
	due := func(kind string) {
		m.Queue, m.Kind = r.cfg.Queue, kind
		m.NotBefore = now.Add(d.Delay)
		if !d.Until.IsZero() {
			m.NotBefore = d.Until
		}
		if latest := now.Add(forebay.MaxDelay - time.Hour); m.NotBefore.After(latest) {
			m.NotBefore = latest
		}
		m.Payload = []byte("null")
	}
	switch d.Kind {
	case flow.KindDelay:
		due(KindDelay)
	case flow.KindWait:
		due(KindWait)
	case flow.KindDead:
		m.Queue, m.Kind = r.cfg.Queue, KindDead
		m.Headers["flow-reason"] = strings.Join(strings.Fields(d.Reason), " ") // headers are one line
	case flow.KindEmit:
		m.Job = nil
		if d.Queue == "" {
			m.Queue = r.cfg.Events
			if r.cfg.Emit != nil {
				m.Payload = r.cfg.Emit(m.ID, m.Kind, m.Payload, now)
			}
		}
	case flow.KindFlow:
		m.Queue, m.Kind = r.cfg.Queue, KindRun
		m.Headers = map[string]string{HeaderFlow: d.Use, HeaderVersion: strconv.Itoa(d.Version)}
		p, _ := json.Marshal(parent{s.ID, d.Step, d.Round, d.Item}) // cannot fail
		m.Headers[headerParent] = string(p)
		m.Job.Tags = []string{tagOf(d.Use)}
	}
}

// StepHeaders are those of a job's headers that say of which run it is a step; nil: of
// none. Follow needs no others.
func StepHeaders(all map[string]string) map[string]string {
	if all[HeaderRun] == "" {
		return nil
	}
	some := map[string]string{}
	for _, name := range []string{HeaderRun, HeaderStep, HeaderRound, HeaderItem, HeaderUndo, HeaderFailure} {
		if v, ok := all[name]; ok {
			some[name] = v
		}
	}
	return some
}

// eventOf reads what a job is of from its headers; nil: of no run.
func eventOf(m *forebay.Message) (run string, e *flow.Event) {
	run = m.Headers[HeaderRun]
	if run == "" || m.Kind == KindAdvance {
		return "", nil
	}
	e = &flow.Event{Step: m.Headers[HeaderStep], Item: flow.NoItem, Undo: m.Headers[HeaderUndo] != ""}
	e.Round, _ = strconv.Atoi(m.Headers[HeaderRound])
	if item := m.Headers[HeaderItem]; item != "" {
		e.Item, _ = strconv.Atoi(item)
	}
	return run, e
}

// withOutput puts in a result as far as a run could keep it.
func withOutput(e *flow.Event, result []byte) {
	if len(result) > flow.MaxContextBytes {
		e.Large = len(result)
		return
	}
	e.Output = result
}

func failure(c forebay.Cause) *flow.Failure {
	return &flow.Failure{Code: c.Code, Message: c.Message}
}
