package ledger_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/enginetest"
)

// The three places where a process can die: between the row and its notice, between the
// notice and the knowledge of it, between the verdict and the end of the notice. In each
// the call of the remote engine fails as the process dies; the next one knows nothing of it.
func TestDeathBetween(t *testing.T) {
	once := func(op enginetest.Op, before, after float64) enginetest.Plan {
		return enginetest.Plan{Ops: []enginetest.Op{op}, Before: before, After: after}
	}
	for name, plan := range map[string]enginetest.Plan{
		"row and notice":           once(enginetest.OpSend, 1, 0),
		"notice and its knowledge": once(enginetest.OpSend, 0, 1),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *stand) {
				s.live(s.faulty(plan), 0)
				s.send(job("a"), job("b"))
				synctest.Wait()
				s.job("a", forebay.StateWaiting)
				s.live(s.remote, 0)
				s.settle(forebay.Ack, 0, s.want(time.Second, "a", "b")...)
				s.quiet()
				if j := s.job("b", forebay.StateCompleted); j.Deliveries != 1 {
					s.Errorf("handed out %d times", j.Deliveries)
				}
			})
		})
	}
	t.Run("verdict and end of the notice", func(t *testing.T) {
		inBubble(t, func(s *stand) {
			s.live(s.faulty(once(enginetest.OpSettle, 1, 0)), 0)
			s.send(job("a"))
			s.settle(forebay.Ack, 0, s.want(time.Second, "a")...)
			synctest.Wait()
			if waiting, active := s.notices(); waiting+active != 1 {
				s.Fatalf("%d notices wait and %d are in flight; the one was not ended", waiting, active)
			}
			s.live(s.remote, 0)
			s.quiet() // it comes again when its lease ends, and begins nothing
			s.job("a", forebay.StateCompleted)
		})
	})
}

// While the remote engine is away jobs are taken at once, and begin when it is back.
func TestRemoteIsAway(t *testing.T) {
	inBubble(t, func(s *stand) {
		s.live(s.faulty(enginetest.Plan{Ops: []enginetest.Op{enginetest.OpSend}, Before: 1, Times: 3}), 0)
		began := time.Now()
		s.send(job("a"))
		if took := time.Since(began); took != 0 {
			s.Errorf("a send took %s", took)
		}
		synctest.Wait()
		if away := s.e.Away(); len(away) != 1 || away[0] != "q" {
			s.Errorf("away: %v", away)
		}
		s.settle(forebay.Ack, 0, s.want(20*time.Second, "a")...)
		synctest.Wait() // who sent the notice may hear of it after who received it
		if away := s.e.Away(); len(away) != 0 {
			s.Errorf("still away: %v", away)
		}
		s.quiet()
	})
}

// Notices that are lost are given again: SQS drops what is older than its retention, and
// somebody may purge the queue.
func TestLostNoticesAreGivenAgain(t *testing.T) {
	inBubble(t, func(s *stand) {
		s.send(job("a"), job("b"))
		synctest.Wait()
		if n, err := s.remote.Purge(s.Context(), "q"); n != 2 || err != nil {
			s.Fatal(n, err)
		}
		s.settle(forebay.Ack, 0, s.want(time.Minute, "a", "b")...)
		s.quiet()
	})
}

// A queue that is paused keeps its jobs, and its notices cost next to nothing.
func TestNoticesOfWhatMayNotBegin(t *testing.T) {
	inBubble(t, func(s *stand) {
		remote := &counted{Engine: s.remote}
		s.live(remote, 0)
		s.pause(true)
		s.send(job("a"), job("b"))
		for range 15 {
			s.want(20 * time.Second) // as a worker asks, for five minutes
		}
		if n := remote.calls.Load(); n > 200 {
			s.Errorf("%d calls in five minutes of a pause", n)
		}
		go func() {
			time.Sleep(5 * time.Second)
			s.pause(false)
		}()
		began := time.Now()
		ds := s.want(20*time.Second, "a", "b")
		if took := time.Since(began); took != 5*time.Second {
			s.Errorf("they began after %s, and the pause ended after 5s", took)
		}
		s.settle(forebay.Ack, 0, ds...)
		s.quiet()
	})
}
