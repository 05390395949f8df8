package flow

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RunState is how a run is.
type RunState string

const (
	RunRunning   RunState = "running"
	RunFailing   RunState = "failing"   // something failed, or it is to stop: what runs may end
	RunUndoing   RunState = "undoing"   // compensations run
	RunCompleted RunState = "completed" // the end
	RunFailed    RunState = "failed"    // the end
	RunCancelled RunState = "cancelled" // the end
)

// Final tells whether it moves no more by itself.
func (s RunState) Final() bool { return s == RunCompleted || s == RunFailed || s == RunCancelled }

// StepState is how a step of a run is.
type StepState string

const (
	StepBlocked   StepState = "blocked"   // it waits for what leads to it
	StepSent      StepState = "sent"      // its job, or some of its items, are on their way
	StepDead      StepState = "dead"      // its job is a dead letter, and the run waits for it
	StepCompleted StepState = "completed" // ended well
	StepSkipped   StepState = "skipped"   // not wanted, or failed and skipped, or skipped by hand
	StepFailed    StepState = "failed"
	StepCancelled StepState = "cancelled"
)

// Final tells whether it moves no more by itself.
func (s StepState) Final() bool {
	return s == StepCompleted || s == StepSkipped || s == StepFailed || s == StepCancelled
}

// Run is the state of a run: all that decisions need besides the plan and the input.
// It is stored as JSON.
type Run struct {
	ID      string              `json:"id"`
	Flow    string              `json:"flow"`
	Version int                 `json:"version,omitempty"`
	Started time.Time           `json:"started"`
	State   RunState            `json:"state"`
	Paused  bool                `json:"paused,omitempty"`
	Stopped bool                `json:"stopped,omitempty"` // it ends as cancelled
	NoUndo  bool                `json:"noUndo,omitempty"`  // it ends without compensations
	Order   int                 `json:"order,omitempty"`   // steps that have completed
	Context int                 `json:"context,omitempty"` // bytes of outputs that it keeps
	Failure *Failure            `json:"failure,omitempty"`
	Output  json.RawMessage     `json:"output,omitempty"`
	Steps   map[string]*StepRun `json:"steps"`
}

// StepRun is the state of a step.
type StepRun struct {
	State   StepState       `json:"state"`
	Taken   bool            `json:"taken,omitempty"` // skipped, and what needs it goes on
	Round   int             `json:"round,omitempty"`
	Loops   int             `json:"loops,omitempty"` // gotos back that it has caused
	Order   int             `json:"order,omitempty"` // as which it completed, from 1
	Output  json.RawMessage `json:"output,omitempty"`
	Omitted int             `json:"omitted,omitempty"` // bytes of an output for which there was no room
	Error   *Failure        `json:"error,omitempty"`
	Went    string          `json:"went,omitempty"` // failed, and its goto leads there
	To      []string        `json:"to,omitempty"`   // what a branch chose
	Each    *EachRun        `json:"each,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"` // instead of with, by hand
	Asked   bool            `json:"asked,omitempty"`   // what it has sent was asked to end
	Undo    UndoState       `json:"undo,omitempty"`
}

// UndoState is how the compensation of a step is.
type UndoState string

const (
	UndoSent   UndoState = "sent"
	UndoDone   UndoState = "done"
	UndoFailed UndoState = "failed"
)

// EachRun counts the items of a for_each. What has ended is kept as ranges, of which
// there are never more than items in flight.
type EachRun struct {
	Total  int      `json:"total"`
	Next   int      `json:"next"` // items before it were sent
	Done   int      `json:"done"`
	Failed int      `json:"failed,omitempty"`
	Ended  [][2]int `json:"ended,omitempty"` // [from, to) in order, none touching the next
	First  *Failure `json:"first,omitempty"` // of an item
	Stop   *Failure `json:"stop,omitempty"`  // why no further ones are sent
}

// InFlight is how many items were sent and have not ended.
func (e *EachRun) InFlight() int { return e.Next - e.Done - e.Failed }

// end books the end of an item; false: it is known, or was never sent.
func (e *EachRun) end(item int) bool {
	if item < 0 || item >= e.Next {
		return false
	}
	i, found := slices.BinarySearchFunc(e.Ended, item, func(r [2]int, item int) int {
		switch {
		case r[1] <= item:
			return -1
		case r[0] > item:
			return 1
		}
		return 0
	})
	if found {
		return false
	}
	left := i > 0 && e.Ended[i-1][1] == item
	right := i < len(e.Ended) && e.Ended[i][0] == item+1
	switch {
	case left && right:
		e.Ended[i-1][1] = e.Ended[i][1]
		e.Ended = slices.Delete(e.Ended, i, i+1)
	case left:
		e.Ended[i-1][1]++
	case right:
		e.Ended[i][0]--
	default:
		e.Ended = slices.Insert(e.Ended, i, [2]int{item, item + 1})
	}
	return true
}

// open lists the items in flight.
func (e *EachRun) open() (items []int) {
	at := 0
	for _, r := range append(slices.Clone(e.Ended), [2]int{e.Next, e.Next}) {
		for ; at < r[0]; at++ {
			items = append(items, at)
		}
		at = r[1]
	}
	return items
}

// Failure is why something failed.
type Failure struct {
	Step    string `json:"step,omitempty"` // of a run: where it failed
	Code    string `json:"code"`
	Message string `json:"message"`
}

// NoItem is the item of what is none of a for_each.
const NoItem = -1

// JobID names the job of a step: it follows from the state, and never changes.
func JobID(run, step string, round, item int, undo bool) string {
	id := run + "/" + step
	if round > 0 {
		id += "@" + strconv.Itoa(round)
	}
	if item >= 0 {
		id += "/" + strconv.Itoa(item)
	}
	if undo {
		id += "~undo"
	}
	return id
}

// Event is what happened to a job of a run.
type Event struct {
	Step   string          `json:"step"`
	Round  int             `json:"round,omitempty"`
	Item   int             `json:"item"` // NoItem: the step itself
	Undo   bool            `json:"undo,omitempty"`
	Type   EventType       `json:"type"`
	Output json.RawMessage `json:"output,omitempty"`
	Large  int             `json:"large,omitempty"` // bytes of an output that is too large to be told
	Error  *Failure        `json:"error,omitempty"`
}

// EventType is what happened.
type EventType string

const (
	EventCompleted EventType = "completed"
	EventFailed    EventType = "failed"    // for good
	EventTimedOut  EventType = "timed_out" // a wait
	EventCancelled EventType = "cancelled" // its job was, or it expired
)

// Send is a job, or an emitted event, that is to be sent. Sending it again is
// harmless, for its ID is fixed.
type Send struct {
	ID       string
	Step     string
	Round    int
	Item     int
	Undo     bool
	Kind     Kind
	Use      string // the kind of the job, the type of the event, the name of the sub-flow
	Version  int    // of the sub-flow; 0: latest
	Payload  json.RawMessage
	Policy   // but for Group and LimitKey
	Group    string
	LimitKey string
	Delay    time.Duration // delay, wait: how long until it is due
	Until    time.Time     // delay: instead
	Reason   string        // dead_letter
}

// Effects are what a decision asks for, besides the new state.
type Effects struct {
	Send       []Send
	Cancel     []string // ids of jobs
	CancelRuns []string // ids of runs of sub-flows
	Drop       []string // ids of dead jobs that a further round replaces
	Reopened   bool     // it was final, and goes on
}

// ParseJobID takes a JobID apart. The run of a sub-flow has itself the id of a step.
func ParseJobID(id string) (run, step string, round, item int, undo, ok bool) {
	item = NoItem
	id, undo = strings.CutSuffix(id, "~undo")
	cut := strings.LastIndexByte(id, '/')
	if cut > 0 && cut+1 < len(id) && id[cut+1] >= '0' && id[cut+1] <= '9' { // step ids begin with a letter
		n, err := strconv.Atoi(id[cut+1:])
		if err != nil {
			return "", "", 0, 0, false, false
		}
		id, item = id[:cut], n
		cut = strings.LastIndexByte(id, '/')
	}
	if cut <= 0 {
		return "", "", 0, 0, false, false
	}
	run, step = id[:cut], id[cut+1:]
	if step, after, further := strings.Cut(step, "@"); further {
		n, err := strconv.Atoi(after)
		return run, step, n, item, undo, err == nil && badStepID(step) == ""
	}
	return run, step, 0, item, undo, badStepID(step) == ""
}

// Begin is a new run.
func (p *Plan) Begin(id string, at time.Time) *Run {
	r := &Run{ID: id, Flow: p.Name, Version: p.Version, Started: at.UTC(), State: RunRunning, Steps: make(map[string]*StepRun, len(p.steps))}
	for _, v := range p.steps {
		r.Steps[v.ID] = &StepRun{State: StepBlocked}
	}
	return r
}
