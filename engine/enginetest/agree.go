package enginetest

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Random life of a crowd of jobs. The contract leaves an engine free in much of
// what it does with it, but what it tells must agree: the history with the ledger,
// the counts with both, and all of it with itself after a restart.

func agreeCases() []testCase {
	return []testCase{
		{name: "agree/history, ledger and counts, whatever happens", invariants: []int{1, 4, 5}, needs: Ledger, run: agreeLife},
		{name: "agree/over restarts too", invariants: []int{1, 4, 5}, needs: Ledger, reopens: true, run: agreeReopen},
	}
}

func agreeLife(v *env) {
	c := newCrowd(v)
	c.grow(40)
	for range 8 {
		for range 40 {
			c.live()
		}
		c.agree()
	}
	c.finishAll()
}

func agreeReopen(v *env) {
	c := newCrowd(v)
	c.grow(40)
	for range 6 {
		for range 40 {
			c.live()
		}
		before := c.known()
		c.reopen()
		c.held = nil
		c.agree()
		after := c.known()
		for id, was := range before {
			now, ok := after[id]
			switch {
			case !ok:
				c.failf("%q was %s and is forgotten by the restart", id, was.State)
			case was.State.Final():
				c.sameJob(now, was)
			case now.State == forebay.StateActive || now.Attempts != was.Attempts || now.Deliveries != was.Deliveries:
				c.failf("%q was %+v before the restart and is %+v", id, was, now)
			case was.CancelRequested && now.State != forebay.StateCancelled:
				c.failf("%q was asked to stop, and is %s after the restart", id, now.State)
			}
		}
	}
	c.finishAll()
}

// agree holds what the engine tells in one way against what it tells in another.
func (c *crowd) agree() {
	c.Helper()
	jobs := c.known()
	last := make(map[string]forebay.HistoryEvent) // that has a state
	ends, retries := make(map[string]int), make(map[string]int)
	for _, e := range c.events(engine.HistoryQuery{}) {
		if e.State != "" || e.Type == forebay.HistoryDiscarded {
			last[e.Job] = e
		}
		switch {
		case e.Type == forebay.HistoryReplayed:
			ends[e.Job], retries[e.Job] = 0, 0
		case e.State.Final():
			ends[e.Job]++
		case e.Type == forebay.HistoryRetry:
			retries[e.Job]++
		}
		if ends[e.Job] > 1 {
			c.failf("%q has finished twice: %+v", e.Job, e)
		}
	}
	for id, j := range jobs {
		told := last[id].State
		if told == forebay.StateDelayed && j.State == forebay.StateWaiting && !last[id].Due.After(time.Now()) {
			told = j.State // time alone has no event
		}
		if told != j.State {
			c.failf("%q is %s by the ledger, by the history %+v", id, j.State, last[id])
		}
		failed := j.Attempts
		if j.State == forebay.StateDead && j.Cause.Code != "deadline" {
			failed--
		}
		if retries[id] != failed {
			c.failf("%q has failed %d times by the ledger, %d by the history", id, failed, retries[id])
		}
	}
	c.countsAgree(jobs)
}

// countsAgree holds the counts of the queues against the ledger.
func (c *crowd) countsAgree(jobs map[string]forebay.Job) {
	c.Helper()
	for n := range crowdQueues {
		queue := "q" + string(rune('0'+n))
		have := make(map[forebay.State]int64)
		for _, j := range jobs {
			if j.Queue == queue {
				have[j.State]++
			}
		}
		c.counts(queue, have[forebay.StateWaiting], have[forebay.StateActive], have[forebay.StateDelayed], have[forebay.StateDead])
	}
}

// finishAll works everything off, and wants all of it finished.
func (c *crowd) finishAll() {
	c.Helper()
	c.pass(time.Hour + time.Minute) // all leases and delays have ended
	c.held = nil
	for n := range crowdQueues {
		for {
			ds := c.receive(engine.Receive{Queue: "q" + string(rune('0'+n)), Max: 50, Lease: c.lease()})
			if len(ds) == 0 {
				break
			}
			c.ack(ds...)
		}
	}
	for id, j := range c.known() {
		if !j.State.Final() {
			c.failf("%q is %s, and nothing comes any more", id, j.State)
		}
	}
	c.agree()
}
