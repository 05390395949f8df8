package engine

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
)

// DeadGroups is the ability to work dead letters off as a list: by their cause, in the
// order in which they died, and with a reason. Package broker has a slower way for
// engines that keep dead letters without it.
type DeadGroups interface {
	// DeadGroups lists what dead letters there are, by fingerprint. Its work is bounded
	// by the number of groups, never by that of the dead letters.
	DeadGroups(ctx context.Context, q DeadGroupQuery) (DeadGroupPage, error)

	// DeadSeqs lists the numbers of dead letters, oldest first: q.Limit of those with a
	// larger number than after. q.Before bounds them from above.
	DeadSeqs(ctx context.Context, q DeadQuery, after int64) ([]int64, error)

	// EndDead takes dead letters away, in the order in which they died, each in one step
	// with what takes its place. A nil entry means done; CodeNotFound: no such one.
	EndDead(ctx context.Context, ends []DeadEnd) ([]error, error)
}

// DeadEnd says how a dead letter leaves.
type DeadEnd struct {
	Seq    int64
	Reason string           // for the history
	Next   *forebay.Message // sent in its place, if its id is not known yet; nil: nothing
}

// LeftByRetention begins the text of the event of a dead job that left by its own
// retention (JobOptions.Keep).
const LeftByRetention = "kept as long as its retention says"

// DeadOrder is how groups are listed.
type DeadOrder string

const (
	DeadNewest  DeadOrder = "newest"  // the last to die first
	DeadLargest DeadOrder = "largest" // the most dead letters first
)

// MaxDeadGroups is how many groups an engine keeps apart. What dies of yet another
// cause is in a group of its queue, kind and code, whatever its text says.
const MaxDeadGroups = 10_000

// DeadGroupQuery asks for a page of groups.
type DeadGroupQuery struct {
	Queue       string // empty: all
	Kind        string // empty: all
	Code        string // empty: all
	Fingerprint uint64 // 0: all
	Order       DeadOrder
	After       string // Next of the page before; empty: from the start. CodeInvalid: it is none
	Limit       int    // 1 to 1000; 0: 100
}

// DeadGroupPage is a page of groups. Next is empty at the end. What dies or leaves
// between two pages may be missed, or come twice.
type DeadGroupPage struct {
	Groups []DeadGroup
	Next   string
}

// DeadGroup are the dead letters of one cause.
type DeadGroup struct {
	Fingerprint uint64
	Queue       string
	Kind        string
	Code        string
	Text        string    // of the cause, without what differs between its dead letters
	Count       int64     // of those that are there
	First       time.Time // when one died first, since the group has been there
	Last        time.Time
	Sample      int64 // the number of the newest
}
