package enginetest

import "slices"

// Gaps in what the contract itself promises. Some stores (SQS above all) have rules of
// their own that no engine on them can mend. Such an engine names the ability in
// Harness.Cannot, as it does with the others: then the cases that need it are not run,
// and the case here holds it to what it does instead. That case fails for an engine
// that has the ability after all, so nobody can claim a gap in order to pass.
const (
	Joining   Ability = "joining duplicates"               // by id, at all
	Telling   Ability = "telling duplicates"               // joined for a while, but nobody is told
	Grouping  Ability = "order in groups"                  //
	Counting  Ability = "attempts apart from hand-outs"    // an attempt is a hand-out
	Recalling Ability = "causes of earlier failures"       //
	Leaving   Ability = "leaving a wait at once"           // a Receive that is to end may take a second
	Filling   Ability = "binary payloads of the full size" //
	Sorting   Ability = "order of age in large batches"    //
	Dating    Ability = "age of the oldest"                //
	Sparing   Ability = "purging without what is active"   //
	Delaying  Ability = "messages that wait for a time"    // Message.NotBefore
)

// gap is what stands for an ability that is missing.
type gap struct {
	replaces []string // cases that need the ability
	run      func(v *env)
}

func gaps() map[Ability]gap {
	dedup := []string{"dedup/by id in one call", "dedup/by id across calls", "dedup/by id while active and after ack", "dedup/side by side",
		"dedup/another payload is a conflict", "dedup/a fingerprint stands for the payload", "dedup/the window passes",
		"dedup/the window does not pass over what is there", "next/appears with the verdict", "next/a duplicate is harmless",
		"stats/follow what happens", "soak/all at once, everything ends once", "batch/the largest", "purge/drops what is not active"}
	return map[Ability]gap{
		Joining: {append([]string{"next/not when the receipt is refused"}, dedup...), gapJoining},
		Telling: {append([]string{"dedup/by key", "dedup/by key in one call"}, dedup...), gapTelling},
		Grouping: {[]string{"group/in order, one batch at a time", "group/several in one batch, others go on", "group/later ones wait for a retry",
			"group/later ones wait for a release", "group/a released tail comes again in order", "group/order across an expired lease",
			"group/each of a batch has a lease of its own", "group/an ended lease gives back just that one",
			"group/extending one hides all that come after it", "group/order with many consumers"}, gapGrouping},
		Counting: {[]string{"lease/runs out and costs no attempt", "lease/ended by its consumer, the hand-out counts",
			"settle/release charges nothing", "settle/release waits", "settle/retry charges an attempt and keeps the cause",
			"settle/only the last failures are kept", "reopen/leases are freed, deliveries counted", "reopen/what is given back comes again"}, gapCounting},
		Recalling: {[]string{"settle/retry charges an attempt and keeps the cause", "settle/only the last failures are kept",
			"reopen/failures are kept"}, gapRecalling},
		Leaving: {[]string{"receive/the context ends", "close/wakes who waits"}, gapLeaving},
		Filling: {[]string{"payload/large", "send/items at the limits are taken"}, gapFilling},
		Sorting: {[]string{"payload/many sizes in one batch", "lease/all of a batch end by themselves"}, gapSorting},
		Dating:  {[]string{"stats/oldest is the oldest that waits"}, gapDating},
		Sparing: {[]string{"purge/drops what is not active", "purge/lets groups go on"}, gapSparing},
		Delaying: {[]string{"receive/what becomes due wakes it", "receive/not before its time", "next/appears with the verdict",
			"stats/follow what happens", "purge/drops what is not active", "reopen/what is delayed stays delayed"}, gapDelaying},
	}
}

// replaced tells whether a gap's own case stands for a case. The model knows of no gap.
func (h Harness) replaced(name string) bool {
	for a, g := range gaps() {
		if h.Cannot[a] != "" && (name == "model" || slices.Contains(g.replaces, name)) {
			return true
		}
	}
	return false
}
