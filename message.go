package forebay

import (
	"fmt"
	"time"
)

// Priority orders messages of one queue: 0 is the most urgent, 9 the least.
// The zero value means "not set" and counts as 5; make others with At.
type Priority uint8

const (
	priorityLevels  = 10
	defaultPriority = 5
)

// At gives the priority of a level, 0 to 9. Levels outside are clamped.
func At(level int) Priority {
	return Priority(min(max(level, 0), priorityLevels-1) + 1)
}

// Level is the number that users see, 0 to 9.
func (p Priority) Level() int {
	if p == 0 {
		return defaultPriority
	}
	return int(p) - 1
}

// Message is immutable content and routing. Once sent it never changes; what
// happens to it (leases, attempts, verdicts) is told by Delivery and Settlement.
type Message struct {
	ID      string // unique; the broker assigns a UUIDv7 when empty
	Queue   string
	Kind    string // which handler it is for: an event type or a job name
	Payload []byte
	Headers map[string]string

	Priority  Priority
	NotBefore time.Time // zero: at once

	// DedupKey joins messages with different ids that mean the same. Empty: only
	// the id counts. A second message with the id or key of one sent less than
	// DedupWindow ago (zero: DefaultDedupWindow) is a duplicate.
	DedupKey    string
	DedupWindow time.Duration

	// Fingerprint stands for what the message says, where its payload also has what
	// may differ between two sendings of the same (the time of arrival, say). A
	// duplicate with another fingerprint is a Conflict. Zero: a hash of the payload.
	// It is not part of the message that is delivered.
	Fingerprint uint64

	Group    string // messages of one group run in order, one at a time
	LimitKey string // the key of per-key limits (QueueLimits); empty: none

	Limits Limits

	Job *JobOptions // makes it a job, which has a record in the ledger; nil: nobody tracks it
}

// Limits of one message. Zero values mean the queue's own, then the defaults.
type Limits struct {
	Attempts   int // failed attempts before it is a dead letter
	Deliveries int // hand-outs before it is poison
}

// Receipt names one hand-out of one message. It is opaque, and void as soon as
// the lease is settled or lost.
type Receipt string

// Delivery is one leased hand-out of a message.
type Delivery struct {
	Message
	Receipt    Receipt
	Attempt    int       // this one's number: 1 and the failures before it
	Deliveries int       // hand-outs so far, this one included and released ones not
	SentAt     time.Time // when the engine took the message
	LeaseUntil time.Time // after this it may be handed to somebody else
	Failures   []Cause   // of earlier attempts, oldest first, the last MaxFailures
}

// MaxFailures is how many causes of earlier attempts a message keeps.
const MaxFailures = 10

// Verdict is how a delivery ends.
type Verdict uint8

const (
	Ack       Verdict = iota + 1 // done; the message is gone
	Retry                        // failed; again After, one attempt charged
	Release                      // not tried, or interrupted; again After, nothing charged
	Dead                         // will not be tried again by itself; kept with Cause
	Cancelled                    // stopped on request, with Cause; a message that is no job is gone
	Expired                      // too late to begin; a message that is no job is gone
)

func (v Verdict) String() string {
	switch v {
	case Ack:
		return "ack"
	case Retry:
		return "retry"
	case Release:
		return "release"
	case Dead:
		return "dead"
	case Cancelled:
		return "cancelled"
	case Expired:
		return "expired"
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// Settlement ends one delivery. Next appears together with the verdict or not
// at all.
type Settlement struct {
	Receipt Receipt
	Queue   string // of the delivery; for who counts by queue (broker). Engines go by the receipt
	Verdict Verdict
	After   time.Duration // Retry and Release: how long to wait
	Cause   Cause         // all but Ack and Release: why
	Result  []byte        // Ack of a job: JSON, at most MaxResultBytes
	Unbegun bool          // Dead: nobody began it. No attempt is charged, and the hand-out is given back
	Next    []Message
}

// Cause says why an attempt failed or a message died.
type Cause struct {
	Code    string            `json:"code"`              // a short word to group by: "handler", "poison", a SQLSTATE
	Message string            `json:"message"`           // for people
	Detail  map[string]string `json:"detail,omitempty"`  // e.g. column, constraint
	Attempt int               `json:"attempt,omitempty"` // of a job: the number of the attempt that failed
	Started time.Time         `json:"started,omitzero"`  // of a job: when that attempt began
	At      time.Time         `json:"at"`
}

// DeadLetter is a message that will not be tried again by itself.
type DeadLetter struct {
	Seq        int64 // its place in the order of dying; never reused
	Message    Message
	Cause      Cause
	Attempts   int
	Deliveries int
	Failures   []Cause // of the attempts before, oldest first
	SentAt     time.Time
	DiedAt     time.Time

	Fingerprint uint64 // of its cause (engine.DeadFingerprint); 0: the engine does not say
}

// SendResult is what became of one message of a Send.
type SendResult struct {
	ID        string // its own, or the first one's when Duplicate
	Duplicate bool   // an earlier message has this id or dedup key
	Conflict  bool   // a duplicate whose payload differs from the first one's
	Replaced  bool   // a duplicate whose payload the waiting job has now (debounce, keep last)
	Err       error  // nothing was stored; nil also for duplicates
}

// QueueStats counts the messages of one queue, at one moment.
type QueueStats struct {
	Queue     string
	Waiting   int64     // could be handed out now
	Active    int64     // leased
	Delayed   int64     // wait for a time: not-before or retry
	Dead      int64     // dead letters
	Oldest    time.Time // when the oldest waiting message was sent; zero: none waits
	Sent      int64     // since the engine was opened, without duplicates
	Duplicate int64     // since the engine was opened
	Conflict  int64     // duplicates with another payload, since opened
	Completed int64     // acked, since opened
	Cancelled int64     // since opened
	Expired   int64     // since opened
	Bytes     int64     // of waiting, active and delayed messages, where the engine knows
}
