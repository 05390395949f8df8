// Package engine is the contract between Forebay and what stores and moves its
// messages. This comment is the specification of delivery; package enginetest
// holds every engine to it.
//
// # The life of a message
//
//	Send ──▶ waiting ──Receive──▶ active ──Ack──────▶ gone
//	   └──▶ delayed ──time──▶ ▲     │ ├──Dead─────▶ dead ──Replay──▶ waiting
//	                          │     │ └──Retry, Release(After)──▶ delayed
//	                          └─────┴── lease expired, Release(0)
//
// # Who is authoritative
//
// The store is. A lease, a wake-up and a counter are derived from it and may be
// lost; the message may not. The clock is the engine's own (its Config has a
// Now), never the caller's: deadlines that cross the contract are durations.
//
// # Invariants
//
//  1. Durable when it returns. A nil error of Send and Settle means that power
//     loss does not undo it (or what the engine's durability setting promises).
//     Writes are group-committed: at once when idle, and while a flush runs the
//     next group gathers. No timer delays a commit.
//  2. Idempotent. An id, or a dedup key, sent again within its window, or while
//     the first message is still there, is one message; the second caller is told
//     Duplicate, with the first id. The record is written by the commit that
//     stores the message. A message that was not stored leaves no record.
//  3. Fenced. Extend and Settle act only while their receipt is the live one of
//     its message. A late one gets lease_lost and changes nothing. A receipt that
//     settles twice gets lease_lost the second time.
//  4. No delivery is lost. A lease that runs out returns the message to waiting by
//     itself. Restarting an engine whose leases are local frees them at once, but
//     those that were asked to be kept (Receive.Kept): they hold on, with the same
//     receipts, until they end, while groups and limits count them.
//  5. A deploy is not a failure. Release charges nothing: no attempt, and the
//     hand-out is given back, so that neither deploys nor snoozes make a message
//     poison. An expired lease and a crash charge no attempt, but their hand-out
//     counts, and that count survives a crash. (An engine whose store counts every
//     hand-out, such as SQS, says so.)
//  6. Order. Messages of one group are handed out strictly in the order in which
//     they were sent, one batch at a time: while one is active, or waits for its
//     retry, later ones of the group stay. One Receive may hand out several of a
//     group, in order. Each of them has a lease of its own: one that waits again is
//     handed out again when nothing before it in its group is active, also while
//     those after it still are. Without groups order is best effort: priority, then
//     age. A message of level p counts as Ageing×p younger than it is, so that
//     waiting outweighs priority in the end.
//  7. Limits at the claim. At most so many active, and at most so many starts a
//     second, per queue and per limit key, are handed out. "In use" is counted from
//     live leases. A limited message waits; nothing fails and nobody spins.
//  8. One bad item never spoils the batch. Every plural call answers per item, in
//     the order of its input, with as many answers as it had items.
//  9. Settle and what follows are one step: Next appears with the verdict or not at
//     all, and not when the receipt is refused.
//  10. Cost does not grow with the backlog: neither of Receive nor Settle, nor
//     memory. Nothing scans.
//  11. Signals are hints. A lost wake-up costs a bounded delay. Idle means no polling.
//  12. Retention is explicit. Nothing leaves by itself but what a setting names.
//     Dead letters leave by Replay and Discard only.
//
// # Rules for callers and implementers
//
// All methods may be called concurrently. Arguments are not kept or changed after
// the return, but payloads and headers of deliveries belong to the receiver and
// must be treated as read-only. An error of the whole call means that no item was
// done, except where ctx ended: then each item may or may not have been done, and
// repeating the call is harmless thanks to (2) and (3).
package engine

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
)

// Ageing is how much one level of priority counts against waiting time.
const Ageing = 30 * time.Second

// Bounds of plural calls. A longer call is refused as invalid.
const (
	MaxSend    = 10_000
	MaxReceive = 10_000
	MaxWait    = 5 * time.Minute
	MinLease   = 10 * time.Millisecond
	MaxLease   = 12 * time.Hour
)

// Engine stores and moves messages.
type Engine interface {
	// Send stores messages, for any queues; a queue comes to be with its first
	// message. Ids must be set. Valid and invalid items may be mixed: all valid
	// ones are stored in one commit.
	Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error)

	// Receive leases up to r.Max messages of one queue. It returns as soon as it
	// has at least one; with none it waits up to r.Wait for one. No message and a
	// nil error means that the wait ran out. An ended ctx gives its error, and no
	// message stays leased.
	Receive(ctx context.Context, r Receive) ([]forebay.Delivery, error)

	// Extend sets leases to end lease from now, MinLease to MaxLease. 0 ends them now,
	// as if their time had run out: the messages wait again when it returns, their
	// hand-outs count, no attempt is charged, and the receipts are void. A nil entry
	// means done.
	Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error)

	// Settle ends deliveries. A nil entry means done, durably.
	Settle(ctx context.Context, s []forebay.Settlement) ([]error, error)

	// Stats counts, for the named queues or, with none, for all that exist. An
	// unknown name is answered with zeros.
	Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error)

	// Close waits for running calls, wakes waiting ones (they get CodeClosed),
	// and frees what the engine holds. Further calls get CodeClosed.
	Close() error
}

// Receive says what to lease.
type Receive struct {
	Queue string
	Max   int           // 1 to MaxReceive
	Wait  time.Duration // 0: do not wait
	Lease time.Duration // 0: forebay.DefaultLease

	// Together asks for several messages of one group rather than for messages of several
	// groups, as far as the engine finds them near each other. It may do nothing.
	Together bool

	// Kept leases outlive the engine: after a restart, also one by SIGKILL, they and
	// their receipts are live until their time, as last extended, has come by the wall
	// clock. The end of the machine may still end them early. If the lease cannot be
	// stored, Receive gives the store's error and hands out nothing. An engine whose
	// leases cannot be kept refuses with CodeUnsupported.
	Kept bool
}

// As finds an optional ability of an engine, also through wrappers that have an
// Unwrap() Engine method. A wrapper that has an ability only if what it wraps has it tells
// by an As(target any) bool method, which sets the T that target points to.
func As[T any](e Engine) (T, bool) {
	for e != nil {
		if t, ok := e.(T); ok {
			return t, true
		}
		if w, ok := e.(interface{ As(target any) bool }); ok {
			var t T
			if w.As(&t) {
				return t, true
			}
		}
		w, ok := e.(interface{ Unwrap() Engine })
		if !ok {
			break
		}
		e = w.Unwrap()
	}
	var none T
	return none, false
}
