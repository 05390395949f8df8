package estimate_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/estimate"
)

// world is a simulated queue: jobs arrive, wait for one of its slots, run, and all
// of it is told to an estimator, whose every word is checked against what happened.
type world struct {
	t     *testing.T
	e     *estimate.Estimator
	rand  *rand.Rand
	now   time.Time
	slots int
	runs  func() time.Duration // of a job
	next  int                  // id

	waiting []*simulated
	active  endings
	checked bool
	in, all int
	widths  float64
}

type simulated struct {
	id          string
	added, ends time.Time
	stated      estimate.Range
}

// endings are jobs that run, the one that ends first in front.
type endings []*simulated

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].ends.Before(e[j].ends) }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(*simulated)) }
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newWorld(t *testing.T, slots int, runs func(r *rand.Rand) time.Duration) *world {
	r := rand.New(rand.NewPCG(1, 2))
	return &world{
		t: t, e: estimate.New(), rand: r, slots: slots, runs: func() time.Duration { return runs(r) },
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

func (w *world) feed(typ forebay.HistoryType, id string) {
	w.e.Feed(&forebay.HistoryEvent{At: w.now, Type: typ, Job: id, Queue: "q", Kind: "k"})
}

// until lets jobs end and begin up to a moment.
func (w *world) until(t time.Time) {
	for len(w.active) > 0 && !w.active[0].ends.After(t) {
		j := heap.Pop(&w.active).(*simulated)
		w.now = j.ends
		w.feed(forebay.HistoryCompleted, j.id)
		if w.checked && j.stated.Samples > 0 {
			took := j.ends.Sub(j.added)
			w.all++
			if took >= j.stated.Low && took <= j.stated.High {
				w.in++
			}
			w.widths += float64(j.stated.High) / float64(max(j.stated.Low, 1))
		}
		w.begin()
	}
	w.now = t
}

func (w *world) begin() {
	for len(w.waiting) > 0 && len(w.active) < w.slots {
		j := w.waiting[0]
		w.waiting = w.waiting[1:]
		j.ends = w.now.Add(w.runs())
		heap.Push(&w.active, j)
		w.feed(forebay.HistoryStarted, j.id)
	}
}

func (w *world) arrive() {
	w.next++
	j := &simulated{id: fmt.Sprint(w.next), added: w.now, stated: w.e.Estimate("q", "k")}
	w.feed(forebay.HistoryAdded, j.id)
	w.waiting = append(w.waiting, j)
	w.begin()
}

// exponential, with a mean.
func exponential(mean time.Duration) func(r *rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
}

// About eight in ten jobs end within the range that was stated when they came,
// whatever the queue is like, and the range says something.
func TestStatedCoverage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slots int
		runs  func(r *rand.Rand) time.Duration
		gap   func(r *rand.Rand, n int) time.Duration // to the next arrival
		width float64                                 // at most, of high by low, in the mean
		most  float64                                 // share within; where many runs take the same time the low end falls on them
	}{
		"idle, even runs": {10, func(r *rand.Rand) time.Duration {
			return time.Second + time.Duration(r.NormFloat64()*float64(100*time.Millisecond))
		}, func(r *rand.Rand, _ int) time.Duration { return exponential(5 * time.Second)(r) }, 1.5, 0.86},
		"idle, uneven runs": {10, exponential(time.Second), func(r *rand.Rand, _ int) time.Duration { return exponential(5 * time.Second)(r) }, 40, 0.86},
		"busy":              {4, exponential(time.Second), func(r *rand.Rand, _ int) time.Duration { return exponential(280 * time.Millisecond)(r) }, 40, 0.86},
		"bursts of 100": {4, exponential(time.Second), func(_ *rand.Rand, n int) time.Duration {
			if n%100 == 0 {
				return time.Minute
			}
			return 0
		}, 10, 0.86},
		"two kinds of runs": {2, func(r *rand.Rand) time.Duration {
			if r.IntN(10) == 0 {
				return 20 * time.Second
			}
			return time.Second
		}, func(r *rand.Rand, _ int) time.Duration { return exponential(3 * time.Second)(r) }, 60, 0.92},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.slots, c.runs)
			for n := range 6000 {
				w.checked = n > 1000
				w.until(w.now.Add(max(0, c.gap(w.rand, n))))
				w.arrive()
			}
			w.until(w.now.Add(24 * time.Hour))
			share, width := float64(w.in)/float64(w.all), w.widths/float64(w.all)
			t.Logf("%.3f of %d within; high is %.1f times low; own count %.3f", share, w.all, width, w.e.Coverage().Share())
			if share < 0.74 || share > c.most {
				t.Errorf("%.3f of %d jobs ended within their range; %.2f is stated", share, w.all, estimate.Stated)
			}
			if width > c.width {
				t.Errorf("ranges are too wide to say anything: high is %.1f times low", width)
			}
			if own := w.e.Coverage(); math.Abs(own.Share()-share) > 0.03 || own.Jobs < 5000 {
				t.Errorf("it says %.3f of %d of itself", own.Share(), own.Jobs)
			}
		})
	}
}

// When the handlers become three times as slow the range follows.
func TestItFollowsAChange(t *testing.T) {
	t.Parallel()
	slow := false
	w := newWorld(t, 4, func(r *rand.Rand) time.Duration {
		d := exponential(100 * time.Millisecond)(r)
		if slow {
			d *= 3
		}
		return d
	})
	for n := range 6000 {
		slow, w.checked = n > 2000, n > 3500
		w.until(w.now.Add(exponential(100 * time.Millisecond)(w.rand)))
		w.arrive()
	}
	if share := float64(w.in) / float64(w.all); share < 0.72 || share > 0.88 {
		t.Errorf("%.3f after the change", share)
	}
}

// A job that waits is told less and less, one that runs what is left of its run.
func TestRemaining(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, func(*rand.Rand) time.Duration { return time.Second })
	for range 200 {
		w.until(w.now.Add(3 * time.Second))
		w.arrive()
	}
	w.until(w.now.Add(time.Minute))
	for range 20 {
		w.arrive()
	}
	last := w.waiting[len(w.waiting)-1]
	pending := estimate.Pending{ID: last.id, Queue: "q", Kind: "k"}
	before := w.e.Remaining(pending, w.now)
	for range 15 {
		w.until(w.now.Add(time.Second))
	}
	after := w.e.Remaining(pending, w.now)
	if before.Likely < 10*time.Second || after.Likely > before.Likely/2 || after.Likely < time.Second {
		t.Errorf("with 20 before it %v, with 5 before it %v", before, after)
	}
	due := w.e.Remaining(estimate.Pending{ID: "other", Queue: "q", Kind: "k", Due: w.now.Add(time.Hour)}, w.now)
	if due.Low < time.Hour || due.High > 2*time.Hour {
		t.Errorf("delayed by an hour: %v", due)
	}
	half := w.e.Remaining(estimate.Pending{Queue: "q", Kind: "k", Started: w.now.Add(-time.Minute), Percent: 75}, w.now)
	if half.Likely != 20*time.Second {
		t.Errorf("at 75 percent after a minute: %v", half)
	}
	begun := w.e.Remaining(estimate.Pending{Queue: "q", Kind: "k", Started: w.now.Add(-700 * time.Millisecond)}, w.now)
	if begun.Likely < 200*time.Millisecond || begun.Likely > 400*time.Millisecond {
		t.Errorf("0.7 of a second into a second: %v", begun)
	}
	if r := w.e.Estimate("q", "never seen"); r != (estimate.Range{}) {
		t.Errorf("a kind that nobody saw: %v", r)
	}
}

func TestLateIsSaidOnce(t *testing.T) {
	t.Parallel()
	stuck := time.Duration(0)
	w := newWorld(t, 5, func(*rand.Rand) time.Duration { return 10*time.Second + stuck })
	w.arrive() // the first of its kind: nothing is known, so it is never late
	stuck = 0
	for range 50 {
		w.until(w.now.Add(11 * time.Second))
		w.arrive()
	}
	w.until(w.now.Add(time.Minute))
	stuck = time.Hour
	w.arrive()
	id, began := w.active[0].id, w.now
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{29 * time.Second, 0}, {31 * time.Second, 1}, {time.Minute, 0}, {time.Hour, 0}} {
		w.until(began.Add(c.after))
		late := w.e.Late(w.now)
		if len(late) != c.want || c.want == 1 && (late[0].ID != id || late[0].High > 30*time.Second || !late[0].Since.Equal(began)) {
			t.Errorf("after %s: %+v", c.after, late)
		}
	}
}

// What left without being completed teaches nothing and is forgotten; what was given
// back is counted as waiting again.
func TestOtherEndings(t *testing.T) {
	t.Parallel()
	e := estimate.New()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	feed := func(typ forebay.HistoryType, id string, due time.Duration) {
		at = at.Add(time.Second)
		ev := &forebay.HistoryEvent{At: at, Type: typ, Job: id, Queue: "q", Kind: "k"}
		if due > 0 {
			ev.Due = at.Add(due)
		}
		e.Feed(ev)
	}
	for i := range 20 {
		id := fmt.Sprint("a", i)
		feed(forebay.HistoryAdded, id, 0)
		feed(forebay.HistoryStarted, id, 0)
		feed(forebay.HistoryCompleted, id, 0)
	}
	idle := e.Estimate("q", "k")
	for i, typ := range []forebay.HistoryType{forebay.HistoryDead, forebay.HistoryCancelled, forebay.HistoryExpired} {
		id := fmt.Sprint("b", i)
		feed(forebay.HistoryAdded, id, 0)
		if typ != forebay.HistoryExpired {
			feed(forebay.HistoryStarted, id, 0)
		}
		feed(typ, id, 0)
	}
	feed(forebay.HistoryAdded, "later", time.Hour)
	if r := e.Estimate("q", "k"); r.Samples != 20 || r.High > 2*idle.High {
		t.Errorf("got %v, and before %v", r, idle)
	}
	for i := range 30 {
		feed(forebay.HistoryAdded, fmt.Sprint("c", i), 0)
	}
	full := e.Estimate("q", "k")
	if full.Likely < 5*idle.Likely {
		t.Errorf("with 30 waiting %v, with none %v", full, idle)
	}
	feed(forebay.HistoryStarted, "c0", 0)
	feed(forebay.HistoryReleased, "c0", 0)
	if again := e.Estimate("q", "k"); again.Likely < full.Likely {
		t.Errorf("after a release %v, before %v", again, full)
	}
	e.Depth("q", 0, 0)
	if r := e.Estimate("q", "k"); r.Likely > 2*idle.Likely {
		t.Errorf("with a depth of none: %v", r)
	}
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, exponential(time.Second))
	for range 500 {
		w.until(w.now.Add(exponential(300 * time.Millisecond)(w.rand)))
		w.arrive()
	}
	w.until(w.now.Add(time.Hour))
	w.e.Depth("q", 0, 0)
	data, err := w.e.Save(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	again := estimate.New()
	if err := again.Load(data); err != nil {
		t.Fatal(err)
	}
	was, is := w.e.Estimate("q", "k"), again.Estimate("q", "k")
	if d := float64(is.High) / float64(was.High); was.Samples == 0 || is.Samples != was.Samples || d < 0.9 || d > 1.1 {
		t.Errorf("before %v, after %v", was, is)
	}
	if again.Coverage() != w.e.Coverage() {
		t.Errorf("coverage %v, was %v", again.Coverage(), w.e.Coverage())
	}
	for name, bad := range map[string]string{"no JSON": "{", "another version": `{"v":99}`} {
		if err := again.Load([]byte(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := again.Load([]byte(`{"v":1,"kinds":[{"kind":"x","samples":-5,"run":{"f":-7,"c":[1,-1,1e30]}},{"run":{"f":9999999,"c":[1]}}]}`)); err != nil {
		t.Errorf("odd numbers: %v", err)
	}
}

// However many queues, kinds and jobs there are, memory and what is saved are bounded.
func TestBounds(t *testing.T) {
	t.Parallel()
	e := estimate.New()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 20_000 {
		ev := forebay.HistoryEvent{At: at, Type: forebay.HistoryAdded, Job: fmt.Sprint(i), Queue: fmt.Sprint("q", i%1000), Kind: strings.Repeat("k", i%150)}
		e.Feed(&ev)
		if i%2 == 0 {
			ev.Type = forebay.HistoryStarted
			e.Feed(&ev)
			ev.Type, ev.At = forebay.HistoryCompleted, at.Add(time.Duration(i)*time.Millisecond)
			e.Feed(&ev)
		}
	}
	data, err := e.Save(1 << 20)
	if err != nil || len(data) > 1<<20 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	small, err := e.Save(20_000)
	if err != nil || len(small) > 20_000 || estimate.New().Load(small) != nil {
		t.Errorf("%d bytes, %v", len(small), err)
	}
	if n := strings.Count(string(data), `"kind"`); n > 501 {
		t.Errorf("%d kinds", n)
	}
}

func BenchmarkFeed(b *testing.B) {
	e := estimate.New()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		ev := forebay.HistoryEvent{At: at, Type: forebay.HistoryAdded, Job: "a", Queue: "q", Kind: "k"}
		e.Feed(&ev)
		ev.Type = forebay.HistoryStarted
		e.Feed(&ev)
		ev.Type = forebay.HistoryCompleted
		e.Feed(&ev)
	}
}
