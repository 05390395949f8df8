// Package enginetest holds every engine to the contract of package engine. One
// suite judges them all, so that a program behaves the same on each.
//
// Run has the cases, by topic, and a model test: random operations, checked
// after each step against a simple model. Kill ends a process with SIGKILL again
// and again and checks what it had acknowledged. Benchmark measures. Faulty wraps
// an engine so that it fails on demand, for the tests of what is built on engines.
// Jobs are judged as messages are: with the model and under SIGKILL too, and what is
// listed of them is held to engine.JobFilter.Match. Model is the model itself as an engine: slow, and right by being simple.
//
// # Time
//
// Cases about leases, delays and limits need time to pass. By default a case runs
// in a bubble of testing/synctest, where time passes as soon as everything waits:
// hours cost nothing and durations are exact. That suits every engine that lives
// in this process, also one that writes files. An engine that talks over a network
// cannot live in a bubble; its Harness says how time passes (Pass) and what
// duration is long enough to be told from noise (Unit).
//
// # Gaps
//
// What a kind of engine cannot do its Harness says by name, with the reason
// (Cannot). The suite then checks that the engine refuses it openly, instead of
// skipping the case. What a store breaks of the contract itself (gaps.go) is named too,
// and held to what the engine does instead.
//
// It promises to know no engine: it imports the standard library, forebay and
// engine only. It refuses to judge speed; that is for Benchmark and for people.
package enginetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay/engine"
)

// Ability is something that an engine may state that it cannot do.
type Ability string

// The abilities. An engine without one that names an interface does not have it;
// without one of the others it refuses an item that asks for it, with
// CodeUnsupported.
const (
	DeadLetters  Ability = "dead letters" // engine.DeadLetters
	DeadGrouping Ability = "dead groups"  // engine.DeadGroups
	Locating     Ability = "locating"     // engine.Locator
	Limiting     Ability = "limiting"     // engine.Limiter
	Sizing       Ability = "sizing"       // engine.Sizer
	Checking     Ability = "checking"     // engine.Checker
	Purging      Ability = "purging"      // engine.Purger
	Priorities   Ability = "priorities"   // Message.Priority
	DedupKeys    Ability = "dedup keys"   // Message.DedupKey, different from the id
	Following    Ability = "following"    // Settlement.Next
	Ledger       Ability = "ledger"       // engine.Jobs and engine.History
	Listing      Ability = "listing"      // engine.JobLister
	Documenting  Ability = "documents"    // engine.Documents

	Keeping      Ability = "keeping leases" // Receive.Kept
	LateSettling Ability = "late settling"  // engine.Late
	Peeking      Ability = "peeking"        // engine.Peeker
	Logging      Ability = "logging"        // engine.Log, of the queue "logged" at least
	QueueDelays  Ability = "queue delays"   // engine.Delayer
)

// Harness tells the suite how to work one kind of engine.
type Harness struct {
	// Open gives a fresh, empty engine. The suite closes it.
	Open func(t testing.TB) engine.Engine

	// Reopen closes an engine and opens the same store again, as a restart of the
	// process would. Nil: it cannot, nothing outlives the engine.
	Reopen func(t testing.TB, e engine.Engine) engine.Engine

	// Pass lets time pass for the engine. Nil: cases run in a synctest bubble.
	Pass func(t testing.TB, d time.Duration)

	// Unit is the shortest duration that cases use. 0: one second.
	Unit time.Duration

	// Only names the topics of cases to run, where an engine does no more than pass calls
	// on to one that is held to all of them by itself. Empty: all, and the model test.
	Only []string

	// Cannot names what this kind of engine cannot do, and why.
	Cannot map[Ability]string
}

// testCase is one thing that must hold. Its invariants are those of engine.
type testCase struct {
	name       string
	invariants []int
	needs      Ability // empty: every engine can
	reopens    bool    // only where Harness.Reopen is set
	run        func(v *env)
}

func cases() []testCase {
	return slices.Concat(
		sendCases(), dedupCases(), receiveCases(), leaseCases(), settleCases(), nextCases(),
		groupCases(), priorityCases(), limitCases(), rateCases(), deadCases(), replayCases(), deadGroupCases(),
		locateCases(), statsCases(), purgeCases(), closeCases(), reopenCases(), payloadCases(),
		soakCases(), wakeCases(), keptCases(), keptGroupCases(), lateCases(), peekCases(), logCases(), delayCases(), jobCases(),
	)
}

// jobCases are those of engines that keep a ledger.
func jobCases() []testCase {
	return slices.Concat(ledgerCases(), verdictCases(), historyCases(), cancelCases(),
		dedupModeCases(), expiryCases(), changeCases(), tenantCases(), jobLimitCases(), retentionCases(), documentCases(),
		listingCases(), badJobCases(), agreeCases())
}

// Run holds an engine to its contract.
func Run(t *testing.T, h Harness) {
	h = h.withDefaults(t)
	for _, c := range cases() {
		switch {
		case c.reopens && h.Reopen == nil:
			continue
		case len(h.Only) > 0 && !slices.Contains(h.Only, topic(c.name)):
			continue
		case c.needs != "" && h.Cannot[c.needs] != "":
			continue // refusals() asserts the gap instead
		case h.replaced(c.name):
			continue // the gap has a case of its own
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h.bubble(t, func(t testing.TB) { runCase(t, h, c) })
		})
	}
	for a, reason := range h.Cannot {
		t.Run("cannot/"+string(a), func(t *testing.T) {
			t.Parallel()
			t.Logf("%s: %s", a, reason)
			h.bubble(t, func(t testing.TB) { runCase(t, h, refusal(a)) })
		})
	}
	if !h.replaced("model") {
		if len(h.Only) == 0 {
			t.Run("model", func(t *testing.T) { runModel(t, h) })
		}
	}
}

// topic is what stands before the slash in the name of a case.
func topic(name string) string {
	topic, _, _ := strings.Cut(name, "/")
	return topic
}

func (h Harness) withDefaults(t testing.TB) Harness {
	t.Helper()
	for _, name := range h.Only {
		if !slices.ContainsFunc(cases(), func(c testCase) bool { return topic(c.name) == name }) {
			t.Fatalf("enginetest: Harness.Only names the topic %q, which there is not", name)
		}
	}
	if h.Open == nil {
		t.Fatal("enginetest: Harness.Open is not set")
	}
	if h.Unit == 0 {
		h.Unit = time.Second
	}
	return h
}

// bubble runs f where time is the harness's: in a bubble, or as it is.
func (h Harness) bubble(t *testing.T, f func(t testing.TB)) {
	t.Helper()
	if h.Pass != nil {
		f(t)
		return
	}
	synctest.Test(t, func(t *testing.T) { f(t) })
}

// patience bounds a case: fake hours, or real seconds.
func (h Harness) patience() time.Duration {
	if h.Pass == nil {
		return 2 * time.Hour
	}
	return 2 * time.Minute
}

func runCase(t testing.TB, h Harness, c testCase) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), h.patience())
	defer cancel()
	v := &env{TB: t, h: h, ctx: ctx, unit: h.Unit, about: fmt.Sprintf("%s (invariants %v)", c.name, c.invariants)}
	v.e = h.Open(t)
	defer func() { _ = v.e.Close() }() // the case may have closed it already
	c.run(v)
}

// refusal is the case of an ability that the engine says it lacks.
func refusal(a Ability) testCase {
	return testCase{name: "cannot/" + string(a), run: func(v *env) {
		switch a {
		case DeadLetters:
			lacks[engine.DeadLetters](v)
		case DeadGrouping:
			lacks[engine.DeadGroups](v)
		case Locating:
			lacks[engine.Locator](v)
		case Limiting:
			lacks[engine.Limiter](v)
		case Sizing:
			lacks[engine.Sizer](v)
		case Checking:
			lacks[engine.Checker](v)
		case Purging:
			lacks[engine.Purger](v)
		case Ledger:
			lacks[engine.Jobs](v)
			lacks[engine.History](v)
		case Listing:
			lacks[engine.JobLister](v)
		case Documenting:
			lacks[engine.Documents](v)
		case LateSettling:
			lacks[engine.Late](v)
		case Peeking:
			lacks[engine.Peeker](v)
		case Logging:
			lacks[engine.Log](v)
		case QueueDelays:
			lacks[engine.Delayer](v)
		case Priorities, DedupKeys, Following, Keeping:
			refuses(v, a)
		default:
			g, ok := gaps()[a]
			if !ok {
				v.Fatalf("Harness.Cannot names %q, which is no ability", a)
			}
			g.run(v)
		}
	}}
}
