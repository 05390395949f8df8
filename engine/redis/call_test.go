package redis

import (
	"testing"
	"time"
)

// Redis keeps milliseconds; what is cut off would let a job begin too early.
func TestNotBeforeIsRoundedUp(t *testing.T) {
	for ns, want := range map[int64]int64{5_000_000: 5, 5_000_001: 6, 5_999_999: 6, 1: 1} {
		if got := notBefore(time.Unix(0, ns)); got != want {
			t.Errorf("%d ns are %d ms, want %d", ns, got, want)
		}
	}
	if got := notBefore(time.Time{}); got != 0 {
		t.Errorf("no time is %d", got)
	}
}
