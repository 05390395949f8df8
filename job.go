package forebay

import "time"

// State of a job.
type State string

const (
	StateWaiting   State = "waiting"
	StateDelayed   State = "delayed"
	StateActive    State = "active"
	StateCompleted State = "completed"
	StateDead      State = "dead"
	StateCancelled State = "cancelled"
	StateExpired   State = "expired" // it waited too long to be begun
)

// States are all of them, in the order of a job's life.
var States = [...]State{StateWaiting, StateDelayed, StateActive, StateCompleted, StateDead, StateCancelled, StateExpired}

// Final tells whether a job in this state moves no more by itself.
func (s State) Final() bool {
	switch s {
	case StateCompleted, StateDead, StateCancelled, StateExpired:
		return true
	}
	return false
}

// Limits of one job.
const (
	MaxResultBytes   = 1 << 20
	MaxTags          = 16
	MaxTagBytes      = 64
	MaxStageBytes    = 64
	MaxTextBytes     = 1024     // of a progress message, a reason
	MaxProgressBytes = 16 << 10 // of the data of a progress
	MaxLogBytes      = 4096     // of one log line
)

// JobOptions make a message a job: they are what a ledger needs to know beyond
// the message itself. The zero value is a job like any other of its queue.
type JobOptions struct {
	Timeout  time.Duration // of one attempt; 0: the queue's, else none
	Deadline time.Time     // of the whole: after it the job is dead with the cause "deadline"; zero: none
	Expires  time.Time     // not begun by then, it is expired; zero: never
	Backoff  Backoff       // zero fields: the queue's
	Dedup    DedupMode     // how Message.DedupKey works
	Tenant   string        // tenants of a queue take turns; empty is one of them
	Owner    string        // who is told when it is late or fails; empty: nobody in particular
	Tags     []string      // to find it by
	Parent   string        // id of the job that it came from
	Trace    string        // W3C traceparent
	Keep     Retention     // zero fields: the queue's
}

// Backoff is the wait after a failed attempt.
type Backoff struct {
	Kind   BackoffKind   `json:"kind,omitempty"`
	Base   time.Duration `json:"base,omitempty"`   // the wait after the first failure
	Cap    time.Duration `json:"cap,omitempty"`    // longest wait
	Jitter float64       `json:"jitter,omitempty"` // 0 (the default: 0.9) to 1: this share of the wait is random
}

// BackoffKind is how the wait grows; empty: the queue's way.
type BackoffKind string

const (
	BackoffFixed       BackoffKind = "fixed"
	BackoffExponential BackoffKind = "exponential"
)

// DedupMode says what a second job with the same DedupKey, in the same queue, means.
type DedupMode string

const (
	// DedupWindowed is the default: a duplicate within Message.DedupWindow, or
	// while the first is not finished.
	DedupWindowed DedupMode = ""
	// DedupUntilFinished: a duplicate while the first is not finished, not after.
	DedupUntilFinished DedupMode = "until_finished"
	// DedupThrottle: a duplicate within Message.DedupWindow after the first, also when
	// that is finished; not after, also when it is not.
	DedupThrottle DedupMode = "throttle"
	// DedupDebounce: while the first has not begun, the second replaces its payload
	// and begins its delay anew. One that has begun is left alone: the second is a new job.
	DedupDebounce DedupMode = "debounce"
	// DedupKeepLast: while the first is active, one more waits behind it; each
	// further one replaces the payload of the one that waits.
	DedupKeepLast DedupMode = "keep_last"
)

// Retention says how long finished jobs are kept. Dead ones are kept until
// somebody acts on them, unless Dead says otherwise.
type Retention struct {
	Finished Keep `json:"finished,omitzero"` // completed, cancelled, expired
	Dead     Keep `json:"dead,omitzero"`
}

// Keep bounds what is kept. Both bounds hold; zero: no such bound.
type Keep struct {
	Age   time.Duration `json:"age,omitempty"`
	Count int           `json:"count,omitempty"` // of the queue, the newest ones
	None  bool          `json:"none,omitempty"`  // do not keep at all; finished jobs only
}

// Progress of a running job.
type Progress struct {
	Stage   string    `json:"stage,omitempty"`
	Percent float64   `json:"percent"` // 0 to 100
	Message string    `json:"message,omitempty"`
	Data    []byte    `json:"-"` // JSON; nil: none
	At      time.Time `json:"at,omitzero"`
}

// ProgressUpdate is told by whoever holds the lease.
type ProgressUpdate struct {
	Receipt  Receipt
	Progress *Progress // nil: no change
	Log      []LogLine // in order
}

// LogLine is a line that a handler wrote about its job.
type LogLine struct {
	At   time.Time
	Text string
}

// Job is what the ledger knows of a job now.
type Job struct {
	Message // its Job is never nil

	State      State
	Attempts   int // failed so far
	Deliveries int // hand-outs, released ones not counted
	Progress   Progress
	Result     []byte // JSON; nil: none

	SentAt     time.Time
	Due        time.Time // delayed: until when
	StartedAt  time.Time // of the last hand-out; zero: never begun
	FinishedAt time.Time // zero: not yet

	Failures []Cause // of failed attempts, oldest first, the last MaxFailures
	Cause    Cause   // dead, cancelled, expired: why
	DeadSeq  int64   // dead: its number as a dead letter

	CancelRequested bool // active, and told to stop
}

// HistoryType is what happened to a job.
type HistoryType string

const (
	HistoryAdded           HistoryType = "added"
	HistoryReplaced        HistoryType = "replaced" // its payload, by debounce or keep last
	HistoryChanged         HistoryType = "changed"  // priority, delay or payload
	HistoryStarted         HistoryType = "started"
	HistoryProgress        HistoryType = "progress"
	HistoryLog             HistoryType = "log"
	HistoryRetry           HistoryType = "retry"      // failed, and will be tried again
	HistoryReleased        HistoryType = "released"   // given back, no attempt charged
	HistoryLeaseLost       HistoryType = "lease_lost" // the lease ran out, or its process died
	HistoryCancelRequested HistoryType = "cancel_requested"
	HistoryCompleted       HistoryType = "completed"
	HistoryDead            HistoryType = "dead"
	HistoryCancelled       HistoryType = "cancelled"
	HistoryExpired         HistoryType = "expired"
	HistoryReplayed        HistoryType = "replayed"
	HistoryDiscarded       HistoryType = "discarded"
)

// HistoryEvent is one thing that happened to one job. Its Seq is its place in the
// history of the whole store, grows, and is never used twice; gaps are allowed.
type HistoryEvent struct {
	Seq      int64
	At       time.Time
	Type     HistoryType
	Job      string // id
	Queue    string
	Kind     string
	Attempt  int       // of started, retry and final ones
	State    State     // after it; empty: unchanged
	Due      time.Time // retry, released, changed, added: delayed until
	Progress *Progress // progress
	Text     string    // log: the line; cancel_requested, discarded: the reason
	Cause    *Cause    // retry, dead, cancelled, expired
	Result   []byte    // completed; nil also where it is larger than 16 KiB
}
