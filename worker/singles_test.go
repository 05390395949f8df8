package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
)

// A long group does not fill the worker: others run beside it, and what waits at
// hand for its turn is bounded. The engine here answers each receive with one
// group, as it does where all groups are long.
func TestLongGroupsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 8, 100, 5000} {
		s := newSingles(concurrency)
		atHand, started := 0, 0
		for group := 0; s.room() > 0; group++ {
			var items []*item
			for range s.room() {
				items = append(items, &item{d: forebay.Delivery{Message: forebay.Message{Group: fmt.Sprint(group)}}})
			}
			atHand += len(items)
			s.take(items)
			for {
				one, _ := s.next(time.Time{}, false)
				if one == nil {
					break
				}
				started++
			}
		}
		if started < min(concurrency, 20) && concurrency < mostBehind {
			t.Errorf("concurrency %d: %d groups run side by side", concurrency, started)
		}
		if atHand > mostBehind+2*concurrency {
			t.Errorf("concurrency %d: %d at hand", concurrency, atHand)
		}
		if dropped := len(s.drop()); dropped != atHand-started {
			t.Errorf("concurrency %d: dropped %d of %d", concurrency, dropped, atHand-started)
		}
	}
}
