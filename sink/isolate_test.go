package sink_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/forebayhq/forebay/sink"
)

var (
	errBad  = errors.New("bad row")
	errDown = errors.New("down")
)

// table writes rows like a database: a piece with a bad row is refused as a whole.
type table struct {
	bad   map[int]bool
	rows  []int
	calls int
	most  int // calls until it is down; 0: never
}

func (tb *table) write(lo, hi int) error {
	tb.calls++
	if tb.most > 0 && tb.calls > tb.most {
		return errDown
	}
	for i := lo; i < hi; i++ {
		if tb.bad[i] {
			return errBad
		}
	}
	for i := lo; i < hi; i++ {
		tb.rows = append(tb.rows, i)
	}
	return nil
}

func isBad(err error) bool { return errors.Is(err, errBad) }

func TestIsolateFindsExactlyTheBadRows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		n := rnd.IntN(300)
		tb := &table{bad: map[int]bool{}}
		share := rnd.Float64() * rnd.Float64()
		for i := range n {
			tb.bad[i] = rnd.Float64() < share
		}
		if rnd.IntN(2) == 0 {
			tb.most = 1 + rnd.IntN(100)
		}
		errs := sink.Isolate(n, isBad, tb.write)
		var written []int
		for i, err := range errs {
			switch {
			case err == nil:
				written = append(written, i)
			case errors.Is(err, errBad) && !tb.bad[i]:
				t.Fatalf("good row %d of %d is called bad", i, n)
			case errors.Is(err, errDown) && tb.most == 0:
				t.Fatalf("row %d of %d was not tried", i, n)
			}
		}
		if !reflect.DeepEqual(written, tb.rows) { // none is lost, none is doubled, in order
			t.Fatalf("%d rows: said to be written %v, written %v", n, written, tb.rows)
		}
	}
}

func TestIsolateCost(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 100, 1000, 5000, 10000} {
		one := &table{bad: map[int]bool{n / 3: true}}
		sink.Isolate(n, isBad, one.write)
		if most := 2*int(math.Log2(float64(n))) + 8; one.calls > most {
			t.Errorf("one bad row of %d: %d calls, at most %d expected", n, one.calls, most)
		}
		all := &table{bad: map[int]bool{}}
		for i := range n {
			all.bad[i] = true
		}
		sink.Isolate(n, isBad, all.write)
		if all.calls > n+n/2+1 {
			t.Errorf("%d bad rows: %d calls", n, all.calls)
		}
	}
}
