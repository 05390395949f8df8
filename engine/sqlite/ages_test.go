package sqlite

import (
	"math/rand/v2"
	"testing"
)

func TestAges(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	var a ages
	var in []int64
	for range 20_000 {
		if n := len(in); n > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(n)
			a.remove(in[i])
			in[i] = in[n-1]
			in = in[:n-1]
		} else {
			at := 1 + rng.Int64N(500)
			a.add(at)
			in = append(in, at)
		}
		want := int64(0)
		for _, at := range in {
			if want == 0 || at < want {
				want = at
			}
		}
		if got := a.oldest(); got != want {
			t.Fatalf("seed %d: oldest %d, want %d", seed, got, want)
		}
		if len(a.times) > 2*500+64 {
			t.Fatalf("seed %d: %d times are kept", seed, len(a.times))
		}
	}
}
