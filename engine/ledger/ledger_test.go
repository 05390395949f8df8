package ledger_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/ledger"
)

// A notice is in flight while its job is worked, and goes with it.
func TestNoticeLivesAsLongAsTheWork(t *testing.T) {
	inBubble(t, func(s *stand) {
		s.send(job("a"), job("b"))
		synctest.Wait()
		if waiting, _ := s.notices(); waiting != 2 {
			s.Fatalf("%d notices of 2 jobs", waiting)
		}
		ds := s.want(time.Second, "a", "b")
		for range 6 { // beyond all leases of the beginning
			time.Sleep(30 * time.Second)
			if _, err := s.e.Extend(s.Context(), []forebay.Receipt{ds[0].Receipt, ds[1].Receipt}, time.Minute); err != nil {
				s.Fatal(err)
			}
			synctest.Wait()
			if waiting, active := s.notices(); waiting != 0 || active != 2 {
				s.Fatalf("%d notices wait and %d are in flight, while two jobs are worked", waiting, active)
			}
		}
		s.settle(forebay.Ack, 0, ds...)
		s.job("a", forebay.StateCompleted)
		s.quiet()
	})
}

// What SQS cannot do, the row does: priority, a long delay, lookup, cancel.
func TestWhatTheRemoteQueueCannotDo(t *testing.T) {
	inBubble(t, func(s *stand) {
		urgent, later := job("urgent"), job("later")
		urgent.Priority = forebay.At(0)
		later.NotBefore = time.Now().Add(3 * time.Hour)
		s.send(job("a"), urgent, later, job("cancelled"))
		s.job("later", forebay.StateDelayed)
		if res, err := s.rows.Cancel(s.Context(), []string{"cancelled"}, "not needed"); err != nil || res[0].State != forebay.StateCancelled {
			s.Fatal(res, err)
		}
		s.settle(forebay.Ack, 0, s.want(0, "urgent", "a")...)
		s.quiet()
		began := time.Now()
		ds := s.want(5 * time.Minute)
		for len(ds) == 0 {
			ds = s.take(5 * time.Minute)
		}
		if late := time.Since(later.NotBefore); ds[0].ID != "later" || late != 0 {
			s.Fatalf("%s began %s after its time, asked since %s", ds[0].ID, late, began)
		}
		s.settle(forebay.Ack, 0, ds...)
		s.quiet()
	})
}

// A job that waits again needs no call of ours to begin again: a retry comes at its
// time, one whose worker has died when its lease ends, a dead one when it is replayed.
func TestWhatWaitsAgain(t *testing.T) {
	inBubble(t, func(s *stand) {
		s.send(job("a"))
		s.settle(forebay.Retry, 10*time.Minute, s.want(0, "a")...)
		began := time.Now()
		s.want(4 * time.Minute)
		s.want(4 * time.Minute)
		s.want(4*time.Minute, "a")
		if took := time.Since(began); took != 10*time.Minute {
			s.Errorf("a retry of ten minutes came after %s", took)
		}
		ds := s.want(2*time.Minute, "a") // its worker has said nothing for a minute
		s.settle(forebay.Dead, 0, ds...)
		s.quiet()
		dead, err := s.rows.Dead(s.Context(), engine.DeadQuery{Queue: "q"})
		if err != nil || len(dead) != 1 {
			s.Fatal(dead, err)
		}
		go func() {
			time.Sleep(10 * time.Second)
			_, _ = s.rows.Replay(context.Background(), []int64{dead[0].Seq})
		}()
		began = time.Now()
		ds = s.want(time.Minute, "a")
		if took := time.Since(began); took != 10*time.Second {
			s.Errorf("a replay after 10s was begun after %s", took)
		}
		s.settle(forebay.Ack, 0, ds...)
		s.quiet()
	})
}

func TestNoMoreNoticesThanTheWindow(t *testing.T) {
	inBubble(t, func(s *stand) {
		s.live(s.remote, 7)
		for i := range 100 {
			s.send(job(fmt.Sprintf("j%02d", i)))
		}
		done := 0
		for done < 100 {
			synctest.Wait()
			if waiting, active := s.notices(); waiting+active > 7 {
				s.Fatalf("%d notices are on their way; 7 are allowed", waiting+active)
			}
			ds := s.take(time.Second)
			if len(ds) == 0 {
				s.Fatalf("nothing comes after %d jobs", done)
			}
			s.settle(forebay.Ack, 0, ds...)
			done += len(ds)
		}
		s.quiet()
	})
}

// What others send becomes a job, once, whatever is lost on the way.
func TestWhatOthersSendIsAJob(t *testing.T) {
	inBubble(t, func(s *stand) {
		foreign := forebay.Message{ID: "x1", Queue: "q", Payload: []byte("hello"), Headers: map[string]string{"Forebay.Kind": "mail"}}
		sendTo(s, s.remote, foreign)
		s.live(s.faulty(enginetest.Plan{Ops: []enginetest.Op{enginetest.OpSettle}, Before: 1, Times: 1}), 0)
		ds := s.want(0, "sent-x1")
		if j := s.job("sent-x1", forebay.StateActive); j.Kind != "mail" || string(j.Payload) != "hello" {
			s.Errorf("the job is %+v", j)
		}
		s.settle(forebay.Ack, 0, ds...)
		s.quiet() // its message comes again, and is nothing new
		s.job("sent-x1", forebay.StateCompleted)
	})
}

// What cannot be a job is a dead letter where it came from, and holds up nobody.
func TestWhatCannotBeAJob(t *testing.T) {
	inBubble(t, func(s *stand) {
		bad := forebay.Message{ID: "x1", Queue: "q", Headers: map[string]string{"Forebay.Kind": "a\tb"}}
		sendTo(s, s.remote, bad)
		s.send(job("a"))
		s.settle(forebay.Ack, 0, s.want(time.Second, "a")...)
		s.quiet()
		dead, err := s.remote.Dead(s.Context(), engine.DeadQuery{Queue: "q"})
		if err != nil || len(dead) != 1 || dead[0].Message.ID != "x1" {
			s.Fatal(dead, err)
		}
	})
}

// Other queues are the ledger's engine's own.
func TestOtherQueues(t *testing.T) {
	inBubble(t, func(s *stand) {
		other := job("o")
		other.Queue = "other"
		s.send(other)
		ds, err := s.e.Receive(s.Context(), engine.Receive{Queue: "other", Max: 1})
		if err != nil || len(ds) != 1 {
			s.Fatal(ds, err)
		}
		s.settle(forebay.Ack, 0, ds...)
		if all, err := s.remote.Stats(s.Context()); err != nil || len(all) != 0 {
			s.Errorf("the remote engine has %+v, %v", all, err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	rows := memory(t)
	defer rows.Close()
	for name, c := range map[string]struct {
		rows, remote engine.Engine
		cfg          ledger.Config
	}{
		"no remote":     {rows, nil, ledger.Config{Queues: []string{"q"}}},
		"no ledger":     {struct{ engine.Engine }{enginetest.NewModel()}, rows, ledger.Config{Queues: []string{"q"}}},
		"no queue":      {rows, rows, ledger.Config{}},
		"no name":       {rows, rows, ledger.Config{Queues: []string{"a b"}}},
		"a window of 0": {rows, rows, ledger.Config{Queues: []string{"q"}, Window: -1}},
	} {
		if _, err := ledger.New(c.rows, c.remote, c.cfg); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
