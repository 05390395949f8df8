package leases_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/internal/leases"
)

func deliveries(from, n int) []forebay.Delivery {
	ds := make([]forebay.Delivery, n)
	for i := range ds {
		ds[i].Receipt = forebay.Receipt(fmt.Sprintf("r%05d", from+i))
	}
	return ds
}

func TestWhatIsLeftComesInTheOrderOfHandingOut(t *testing.T) {
	t.Parallel()
	var h leases.Held
	h.Drop("r1")
	h.Extend("r1", time.Minute)
	h.Add(nil, time.Minute)
	if left := h.Left(); len(left) > 0 {
		t.Errorf("nothing was handed out: %v", left)
	}
	h.Add(deliveries(7, 3), time.Minute)
	h.Add(deliveries(1, 3), time.Minute)
	h.Extend("r00007", time.Hour)
	h.Drop("r00002")
	if left := h.Left(); !slices.Equal(left, []forebay.Receipt{"r00007", "r00008", "r00009", "r00001", "r00003"}) {
		t.Errorf("got %v", left)
	}
}

func TestThoseThatHaveEndedTakeNoMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var h leases.Held
		h.Add(deliveries(0, 1000), time.Second)
		h.Extend("r00007", time.Hour)
		for i := range 20 {
			time.Sleep(2 * time.Second)
			h.Add(deliveries(1000*(i+1), 1000), time.Second)
		}
		if n := len(h.Left()); n > 3000 || !slices.Contains(h.Left(), "r00007") {
			t.Errorf("%d are kept of 1,001 that hold, or the one that was extended is not", n)
		}
	})
}
