package engine

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
)

// The optional abilities. An engine that lacks one is asked nothing; package
// broker answers for it with CodeUnsupported. Find them with As.

// DeadLetters is the ability to keep, list, replay and discard dead letters.
type DeadLetters interface {
	// Dead lists dead letters, newest first.
	Dead(ctx context.Context, q DeadQuery) ([]forebay.DeadLetter, error)
	// Replay sends dead letters again, to their own queue, with attempts and
	// deliveries reset, in the order in which they died; in the same step they
	// stop being dead letters. A nil entry means done; CodeNotFound: no such one.
	Replay(ctx context.Context, seqs []int64) ([]error, error)
	// Discard removes dead letters for good.
	Discard(ctx context.Context, seqs []int64) ([]error, error)
}

// DeadQuery selects dead letters.
type DeadQuery struct {
	Queue  string // empty: all
	ID     string // of the message; empty: all
	Code   string // of the cause; empty: all
	Group  uint64 // with this fingerprint; 0: all. Only engines with DeadGroups look at it
	Before int64  // only with a smaller Seq, to page on; 0: from the newest
	Limit  int    // 1 to 1000; 0: 100
}

// Locator is the ability to tell where a message is, by its id.
type Locator interface {
	Locate(ctx context.Context, id string) (Location, error)
}

// Where a message is.
type Where string

const (
	WhereWaiting Where = "waiting"
	WhereDelayed Where = "delayed"
	WhereActive  Where = "active"
	WhereDead    Where = "dead"
	WhereDone    Where = "done"    // acked; told while its dedup record lives
	WhereUnknown Where = "unknown" // never seen, or forgotten
	WhereGone    Where = "gone"    // acked, dead or dropped: all that a receipt can tell (Late)
)

// Location is what an engine knows of one message.
type Location struct {
	Where      Where
	Queue      string
	SentAt     time.Time
	NotBefore  time.Time // delayed: until when
	Attempts   int       // failed so far
	Deliveries int
	Last       *forebay.Cause // of the last failure, or of death
	DeadSeq    int64          // dead: to show, replay or discard it
}

// Limiter is the ability to limit what is handed out. Limits are kept by the
// engine and hold for all its consumers.
type Limiter interface {
	SetLimits(ctx context.Context, queue string, l QueueLimits) error
	QueueLimits(ctx context.Context, queue string) (QueueLimits, error)
}

// QueueLimits bound the hand-outs of one queue. Zero means no limit.
type QueueLimits struct {
	Paused bool `json:"paused,omitempty"`

	Active int  `json:"active,omitempty"` // most leased at once
	Rate   Rate `json:"rate,omitzero"`    // most started per time

	KeyActive int  `json:"keyActive,omitempty"` // the same for each LimitKey
	KeyRate   Rate `json:"keyRate,omitzero"`
}

// Rate is a token bucket: Burst tokens at most, refilled evenly with Count
// every Per. In no window of length w do more than Burst + Count×w/Per start.
type Rate struct {
	Count int           `json:"count,omitempty"`
	Per   time.Duration `json:"per,omitempty"`   // 0: one second
	Burst int           `json:"burst,omitempty"` // 0: 1
}

// Delayer is the ability to delay what a queue has, whenever that was sent: the delay of
// FIFO queues of SQS.
type Delayer interface {
	// SetDelay keeps for how long after it was sent a message of a queue is not handed out
	// for the first time, 0 to forebay.MaxDelay. It holds for what is sent and for what is
	// there: as soon as it returns, all that was sent less than d ago and never handed out
	// is delayed, and all that was sent longer ago is not. NotBefore holds beside it, and
	// the later of both counts. What was handed out once is not delayed again. Groups
	// keep their order. The cost is that of counting what is delayed, in bounded slices;
	// no message is written.
	SetDelay(ctx context.Context, queue string, d time.Duration) error
	// Delay tells the delay of a queue; 0 of an unknown one.
	Delay(ctx context.Context, queue string) (time.Duration, error)
}

// Sizer is the ability to tell bytes in use on disk and bytes still free there.
type Sizer interface {
	Size(ctx context.Context) (used, free int64, err error)
}

// Checker is the ability to tell whether messages can be stored durably now. It
// changes nothing that users see. nil: yes; else the error that Send would give.
type Checker interface {
	Check(ctx context.Context) error
}

// Purger is the ability to drop all messages of a queue that are not active,
// with their dedup records. Dead letters stay.
type Purger interface {
	Purge(ctx context.Context, queue string) (dropped int64, err error)
}
