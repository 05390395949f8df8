package flow

import (
	"encoding/json"
	"time"

	"github.com/forebayhq/forebay"
)

// Limits of a definition and of its runs.
const (
	MaxFileBytes    = 256 << 10
	MaxSteps        = 300
	MaxNeeds        = 100
	MaxCases        = 50
	MaxNameBytes    = 56 // of a flow; it is part of a tag
	MaxStepBytes    = 32 // of a step's id
	MaxRunBytes     = 48 // of a run's id, that of a sub-flow not counted
	MaxExprBytes    = 4 << 10
	MaxItems        = 1_000_000 // of a for_each
	MaxInFlight     = 1000
	MaxLoops        = 100 // of a goto back
	MaxApprovers    = 20
	MaxContextBytes = 256 << 10
	MaxWait         = 364 * 24 * time.Hour

	defaultInFlight = 10
	defaultContext  = 64 << 10
	maxExprCost     = 1_000_000
)

// Definition is one version of a flow.
type Definition struct {
	Name        string
	Version     int // 0: not numbered yet
	Description string
	Input       json.RawMessage // JSON Schema of the input; nil: anything
	Output      *Value          // what the run gives; nil: the outputs of the steps that nothing follows
	Timeout     time.Duration   // of a run; 0: none
	Context     int             // bytes of outputs that a run keeps for its steps
	Steps       []Step          // in the order of the file
	Layout      json.RawMessage // how it is drawn; nil: as it comes

	places map[string]place // by path
}

// Place is where something is in the file.
type Place struct{ Line, Column int }

// Place finds where the value at a path is; zero: there is none.
func (d *Definition) Place(path string) Place {
	at := d.places[path]
	return Place{at.line, at.column}
}

// Step finds one by its id.
func (d *Definition) Step(id string) (*Step, bool) {
	for i := range d.Steps {
		if d.Steps[i].ID == id {
			return &d.Steps[i], true
		}
	}
	return nil, false
}

// Kind is what a step does.
type Kind string

const (
	KindJob      Kind = "use"
	KindBranch   Kind = "branch"
	KindParallel Kind = "parallel"
	KindJoin     Kind = "join"
	KindDelay    Kind = "delay"
	KindWait     Kind = "wait"
	KindFlow     Kind = "flow"
	KindEmit     Kind = "emit"
	KindDead     Kind = "dead_letter"
)

// kinds in the order in which messages name them.
var kinds = []Kind{KindJob, KindBranch, KindParallel, KindJoin, KindDelay, KindWait, KindFlow, KindEmit, KindDead}

// Step of a flow. Of the fields below Kind one belongs to it.
type Step struct {
	ID    string
	Title string
	Needs []string
	When  string // CEL; empty: always
	Kind  Kind

	Use      string   // job: the kind of the job
	Cases    []Case   // branch
	Parallel []string // parallel: what begins after it, besides what needs it
	Join     Join
	Delay    Delay
	Wait     Wait
	Flow     FlowRef
	Emit     Emit
	Reason   string // dead_letter

	With    *Value // the payload; nil: the context, {input, steps}
	ForEach *ForEach
	Policy
	OnFailure  OnFailure
	OnTimeout  OnFailure // wait
	Compensate *Compensation
}

// Policy is how the job of a step is sent. Zero fields: the queue's own.
type Policy struct {
	Queue    string // empty: DefaultQueue
	Priority *int
	Group    *Value
	LimitKey *Value
	Timeout  time.Duration // of one attempt
	Retry    Retry
}

// DefaultQueue is where steps go that name none.
const DefaultQueue = "default"

// Retry of a job.
type Retry struct {
	Attempts int
	forebay.Backoff
}

// Case of a branch: the first whose When holds is taken.
type Case struct {
	When string // CEL; empty: else
	To   []string
}

// Join counts the edges that must be taken. 0: all.
type Join struct{ Count int }

// Delay waits for a time.
type Delay struct {
	For   time.Duration
	Until string // CEL: a timestamp, or its text
}

// Wait waits for an event or an approval.
type Wait struct {
	Event    string // its type; empty: an approval
	Match    string // CEL over event; empty: any of the type
	Approval bool
	Role     string          // for people to read; empty: none is said
	By       []string        // who may approve: keys by name or id, or their scopes; empty: anybody who may act
	Form     json.RawMessage // JSON Schema of what the approver fills in
	Timeout  time.Duration
}

// FlowRef names a sub-flow. Version 0: the latest when the step begins.
type FlowRef struct {
	Name    string
	Version int
}

// Emit sends an event: a message that nobody tracks, of this kind.
type Emit struct {
	Type string
	Data *Value // nil: the context
}

// ForEach does a step for each item of a list, or for 0 to n-1.
type ForEach struct {
	In       string // CEL: a list or a number
	InFlight int    // most items sent and not ended
	Failures int    // tolerated failures
}

// FailureMode is what a step's failure means.
type FailureMode string

const (
	Fail       FailureMode = "fail"        // the run fails
	Skip       FailureMode = "skip"        // it goes on as if the step had completed, without output
	DeadLetter FailureMode = "dead_letter" // the run waits until the dead letter is replayed or discarded
	Goto       FailureMode = "goto"        // it goes on at another step
)

// OnFailure is what becomes of a run when a step has failed for good.
type OnFailure struct {
	Mode FailureMode // empty: Fail
	Goto string
	Max  int // of a goto back: rounds at most
}

// Compensation undoes a completed step when the run fails.
type Compensation struct {
	Use  string
	With *Value // nil: the context
	Policy
}
