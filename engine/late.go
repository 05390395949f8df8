package engine

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
)

// Late is the ability to act on a message by any receipt that was ever given for
// it, also when the lease is over or another hand-out has followed. It is there for
// consumers that speak SQS, whose standard queues promise that; everybody else uses
// Extend and Settle, which are fenced (invariant 3). Receipts lead to their message
// for as long as the store lives, and cost nothing to remember. What is no receipt
// of this store, or was changed, gets CodeInvalid. A message that was sent again, or
// replayed, is another one; so may be a job that was changed (Jobs.Change): to
// earlier receipts it is gone.
//
// Late, AckLate and ExtendLate answer item by item, for MaxReceive receipts at most. They
// block for as long as a commit takes, and may be repeated.
type Late interface {
	// Late tells where the messages of receipts are now. It changes nothing.
	Late(ctx context.Context, receipts []forebay.Receipt) ([]LateState, error)

	// AckLate removes messages, durably, whoever holds them: the live receipt of an
	// active one is void afterwards. nil: it is gone, also if it was gone already. An
	// active job is completed, without a result, as by Ack; CodeConflict: it is a job
	// that is not active (Jobs.Cancel ends it).
	AckLate(ctx context.Context, receipts []forebay.Receipt) ([]error, error)

	// ExtendLate sets the current lease of active messages to end lease from now,
	// whoever holds them, as Extend does: 0 ends it now, the hand-out stays counted.
	// nil: done, or the message waits and nothing was changed; CodeNotFound: it is
	// gone; CodeCancelled: done, and it is a job that is to stop.
	ExtendLate(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error)

	// EndActive ends what is active in a queue when it is called, durably, whoever holds
	// it, as Cancelled does: receipts are void, and groups go on. Jobs stay. It is what
	// Purger leaves. An unknown queue is empty.
	EndActive(ctx context.Context, queue string) (ended int64, err error)
}

// LateState is where the message of a receipt is.
type LateState struct {
	Where Where  // waiting, delayed, active or gone; empty with an Err
	Queue string // of a message that is there
	Err   error  // CodeInvalid: that is no receipt
}

// Peeker is the ability to look at messages without a hand-out.
type Peeker interface {
	// Peek lists messages of one queue as they are: waiting, delayed and active. It
	// changes nothing, counts as no hand-out, and does a bounded amount of work. The
	// order is the engine's own. What is there from the first page to the last comes
	// once; what comes or goes meanwhile may be missed. An unknown queue is empty.
	Peek(ctx context.Context, q PeekQuery) (PeekPage, error)
}

// Bounds of Peek.
const (
	MaxPeek     = 1000
	DefaultPeek = 100
)

// PeekQuery asks for a page of messages.
type PeekQuery struct {
	Queue string
	After string // Next of the page before, opaque; empty: from the start. CodeInvalid: it is none
	Limit int    // 1 to MaxPeek; 0: DefaultPeek
}

// PeekPage is a page of messages. Next is empty at the end. A page may be short, even
// empty, with a Next: it is where the work for one page ended.
type PeekPage struct {
	Messages []Peeked
	Next     string
}

// Peeked is one message as it is.
type Peeked struct {
	Message    forebay.Message
	Where      Where // waiting, delayed or active
	Deliveries int   // hand-outs so far, as Delivery counts them
	Attempts   int   // failed so far
	SentAt     time.Time
	NotBefore  time.Time // delayed: until when
	LeaseUntil time.Time // active: until when
}
