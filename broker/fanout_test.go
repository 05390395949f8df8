package broker_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
)

// Between those that are woken others come and go: whoever was there before, and
// stays, gets each event once and in order.
func TestManySubscribersWhileOthersComeAndGo(t *testing.T) {
	watching(t, func(t *testing.T, l *log, w *broker.Watcher) {
		const stay, events = 200, 40 // less than a subscriber may be behind
		follow := func() *broker.Subscription { return w.Subscribe(broker.WatchFilter{Job: "j"}) }
		var subs []*broker.Subscription
		for range stay {
			subs = append(subs, follow())
		}
		var others sync.WaitGroup
		others.Go(func() {
			for range 2000 {
				follow().Close()
			}
		})
		for range events {
			l.write(forebay.HistoryEvent{Job: "j", Queue: "q", Type: forebay.HistoryLog})
		}
		synctest.Wait()
		for i, s := range subs {
			for want := int64(1); want <= events; want++ {
				select {
				case e := <-s.C:
					if e.Seq != want {
						t.Fatalf("subscriber %d got %d, not %d", i, e.Seq, want)
					}
				default:
					t.Fatalf("subscriber %d got %d of %d events", i, want-1, events)
				}
			}
			s.Close()
		}
		others.Wait()
	})
}
