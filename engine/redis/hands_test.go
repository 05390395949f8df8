package redis_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// hand is who does an operation: Node, or the engine.
type hand interface {
	add(j newJob)
	take() (id string)
	end(id, how string)
	tell(id string)
	change(id, how string, value int)
	limit(was, paused bool, active int)
}

type newJob struct {
	id       string
	data     int
	delayed  bool
	priority int
	attempts int
	gone     bool // once it has succeeded
}

const (
	anHour = 3_600_000
	why    = "failed on purpose"
)

// nodeHand is BullMQ.
type nodeHand struct {
	*pair
}

func (h *nodeHand) add(j newJob) {
	opts := args{"jobId": j.id, "attempts": j.attempts, "backoff": args{"type": "fixed", "delay": anHour}}
	if j.delayed {
		opts["delay"] = anHour
	}
	if j.priority > 0 {
		opts["priority"] = j.priority
	}
	if j.gone {
		opts["removeOnComplete"] = true
	}
	h.pair.add("work", args{"n": j.data}, opts)
}

func (h *nodeHand) take() string { return h.n.do("take", args{"queue": "q"})["id"].(string) }

func (h *nodeHand) end(id, how string) {
	value := any(why)
	if how == "complete" {
		value = args{"of": id}
	}
	h.n.do("end", args{"id": id, "how": how, "value": value})
}

func (h *nodeHand) tell(id string) { h.n.do("tell", args{"id": id, "progress": 50, "line": "half"}) }

func (h *nodeHand) change(id, how string, value int) {
	c := args{"queue": "q", "id": id, "how": how, "value": value}
	if how == "data" {
		c["value"] = args{"n": value}
	}
	h.n.do("change", c)
}

func (h *nodeHand) limit(was, paused bool, active int) {
	if paused != was {
		h.n.do(map[bool]string{true: "pause", false: "resume"}[paused], args{"queue": "q"})
	}
	h.n.do("global", args{"queue": "q", "concurrency": active})
}

// ourHand is the engine.
type ourHand struct {
	*pair
	held map[string]forebay.Delivery
	ours map[string]bool // jobs that it added: the ids of the others have their queue before
}

func (h *ourHand) id(id string) string {
	if h.ours[id] {
		return id
	}
	return "q:" + id
}

func (h *ourHand) add(j newJob) {
	h.ours[j.id] = true
	h.send(jobOf(j.id, func(m *forebay.Message) {
		m.Payload, m.Limits.Attempts = fmt.Appendf(nil, `{"n":%d}`, j.data), j.attempts
		m.Job.Backoff = forebay.Backoff{Kind: forebay.BackoffFixed, Base: time.Hour}
		if j.priority > 0 {
			m.Priority = forebay.At(j.priority - 1)
		}
		if j.delayed {
			m.NotBefore = time.Now().Add(time.Hour)
		}
		m.Job.Keep.Finished = forebay.Keep{None: j.gone}
	}))
}

func (h *ourHand) take() string {
	ds, err := h.e.Receive(h.t.Context(), engine.Receive{Queue: "q", Max: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	if len(ds) == 0 {
		return ""
	}
	id := strings.TrimPrefix(ds[0].ID, "q:")
	h.held[id] = ds[0]
	return id
}

func (h *ourHand) end(id, how string) {
	s := forebay.Settlement{Receipt: h.held[id].Receipt, Cause: forebay.Cause{Code: "handler", Message: why}}
	switch how {
	case "complete":
		s.Verdict, s.Result, s.Cause = forebay.Ack, fmt.Appendf(nil, `{"of":%q}`, id), forebay.Cause{}
	case "retry":
		s.Verdict, s.After = forebay.Retry, time.Hour
	case "fail":
		s.Verdict = forebay.Dead
	case "release":
		s.Verdict, s.Cause = forebay.Release, forebay.Cause{}
	}
	errs, err := h.e.Settle(h.t.Context(), []forebay.Settlement{s})
	if err != nil || errs[0] != nil {
		h.t.Fatalf("%s of %s: %v, %v", how, id, errs, err)
	}
}

func (h *ourHand) tell(id string) {
	errs, err := h.e.Progress(h.t.Context(), []forebay.ProgressUpdate{{
		Receipt: h.held[id].Receipt, Progress: &forebay.Progress{Percent: 50}, Log: []forebay.LogLine{{Text: "half"}},
	}})
	if err != nil || errs[0] != nil {
		h.t.Fatal(errs, err)
	}
}

func (h *ourHand) change(id, how string, value int) {
	c := engine.JobChange{ID: h.id(id)}
	var errs []error
	var err error
	switch how {
	case "promote":
		c.Due = new(time.Now().Add(-time.Second))
	case "priority":
		c.Priority = new(forebay.At(value - 1))
	case "data":
		c.Payload = fmt.Appendf(nil, `{"n":%d}`, value)
	case "remove":
		errs, err = h.e.Remove(h.t.Context(), []string{c.ID})
	case "retry":
		letters, deadErr := h.e.Dead(h.t.Context(), engine.DeadQuery{ID: c.ID})
		if deadErr != nil || len(letters) != 1 {
			h.t.Fatalf("dead letters of %s: %v, %v", c.ID, letters, deadErr)
		}
		errs, err = h.e.Replay(h.t.Context(), []int64{letters[0].Seq})
	}
	if errs == nil && err == nil {
		errs, err = h.e.Change(h.t.Context(), []engine.JobChange{c})
	}
	if err != nil || errs[0] != nil {
		h.t.Fatalf("%s of %s: %v, %v", how, id, errs, err)
	}
}

func (h *ourHand) limit(_, paused bool, active int) {
	if err := h.e.SetLimits(h.t.Context(), "q", engine.QueueLimits{Paused: paused, Active: active}); err != nil {
		h.t.Fatal(err)
	}
}
