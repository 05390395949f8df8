// Package auto measures how a concurrency that tunes itself (worker/adapt) follows a back end
// whose capacity changes, beside every fixed setting, in simulated time.
//
// It promises that all of them meet the same back end: a number of servers, a queue before
// them, and a load from which on it does less the more it is asked. It refuses to say
// anything of real back ends: it shows what the limiter does with one that is known.
package auto

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/forebayhq/forebay/worker/adapt"
)

// Phase is a time in which the back end has a capacity.
type Phase struct {
	Name     string
	For      time.Duration
	From, To int           // servers, at its begin and its end
	Service  time.Duration // of one call by one server
	Collapse float64       // times the servers from which load on it thrashes; 0: never
	Refuse   bool          // calls that find no server are refused at once
}

// Plan is what the benchmark and its test run: steps up and down, slower calls, a slow leak,
// and loads under which less comes out.
func Plan() []Phase {
	const long = 2 * time.Minute
	return []Phase{
		{Name: "20 servers", For: long, From: 20, To: 20, Service: 50 * time.Millisecond},
		{Name: "step up to 40", For: long, From: 40, To: 40, Service: 50 * time.Millisecond},
		{Name: "step down to 10", For: long, From: 10, To: 10, Service: 50 * time.Millisecond, Collapse: 2},
		{Name: "calls take twice as long", For: long, From: 30, To: 30, Service: 100 * time.Millisecond},
		{Name: "slow leak, 30 to 12", For: long, From: 30, To: 12, Service: 50 * time.Millisecond, Collapse: 2},
		{Name: "collapses beyond 15", For: long, From: 10, To: 10, Service: 50 * time.Millisecond, Collapse: 1.5},
		{Name: "refuses beyond 25", For: long, From: 25, To: 25, Service: 50 * time.Millisecond, Refuse: true},
	}
}

// Limiter says how many calls may run (adapt.Limiter, or Fixed).
type Limiter interface {
	Limit() int
	Begin(now time.Time)
	End(now, began time.Time, much int, how adapt.End)
}

// Fixed is a limit that stays.
type Fixed int

// Limit is that number.
func (f Fixed) Limit() int { return int(f) }

// Begin counts nothing.
func (Fixed) Begin(time.Time) {}

// End counts nothing.
func (Fixed) End(time.Time, time.Time, int, adapt.End) {}

// Second is what happened in one of them.
type Second struct {
	Done, Refused int
	Limit         float64 // mean
	Servers       float64
}

// Run lets a limiter meet the phases, with always more to do than it lets through, and tells
// what came out each second. A refused call is repeated at once.
func Run(phases []Phase, l Limiter, seed uint64) [][]Second {
	s := &backend{rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_800_000_000, 0), l: l}
	out := make([][]Second, len(phases))
	for i := range phases {
		out[i] = s.run(&phases[i])
	}
	return out
}

// backend is where calls go. Its time is that of its events.
type backend struct {
	rnd     *rand.Rand
	now     time.Time
	l       Limiter
	running events      // calls that servers work on, or that are being refused, by when they end
	waiting []time.Time // calls before the servers, by when they began
	busy    int         // servers
}

type call struct {
	ends, began time.Time
	refused     bool
}

type events []call

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].ends.Before(e[j].ends) }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(v any)        { *e = append(*e, v.(call)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (s *backend) run(p *Phase) []Second {
	begin := s.now
	seconds := make([]Second, int(p.For/time.Second))
	samples := make([]int, len(seconds))
	for {
		s.fill(p, begin)
		next := s.running[0].ends
		if next.Sub(begin) >= p.For {
			s.now = begin.Add(p.For)
			break
		}
		s.now = next
		c := heap.Pop(&s.running).(call)
		at := min(int(next.Sub(begin)/time.Second), len(seconds)-1)
		one := &seconds[at]
		one.Limit += float64(s.l.Limit())
		one.Servers = float64(p.servers(next.Sub(begin)))
		samples[at]++
		if c.refused {
			one.Refused++
			s.l.End(s.now, c.began, 1, adapt.Overload)
			continue
		}
		one.Done++
		s.busy--
		s.l.End(s.now, c.began, 1, adapt.Done)
	}
	for i := range seconds {
		seconds[i].Limit /= math.Max(1, float64(samples[i]))
	}
	return seconds
}

func (p *Phase) servers(since time.Duration) int {
	return p.From + int(math.Round(float64(p.To-p.From)*float64(since)/float64(p.For)))
}

// fill lets in what may run, and gives the servers that are free something to do.
func (s *backend) fill(p *Phase, begin time.Time) {
	servers := p.servers(s.now.Sub(begin))
	for len(s.waiting)+len(s.running) < s.l.Limit() {
		s.l.Begin(s.now)
		if p.Refuse && s.busy+len(s.waiting) >= servers {
			heap.Push(&s.running, call{ends: s.now.Add(2 * time.Millisecond), began: s.now, refused: true})
			continue
		}
		s.waiting = append(s.waiting, s.now)
	}
	for s.busy < servers && len(s.waiting) > 0 {
		began := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.busy++
		heap.Push(&s.running, call{ends: s.now.Add(s.takes(p, servers)), began: began})
	}
}

// takes is how long a server takes for a call: it scatters, and under too much load it grows
// faster than the load.
func (s *backend) takes(p *Phase, servers int) time.Duration {
	const spread = 0.3
	f := math.Exp(spread*s.rnd.NormFloat64() - spread*spread/2)
	if load := float64(len(s.waiting)+len(s.running)+1) / float64(servers); p.Collapse > 0 && load > p.Collapse {
		f *= math.Pow(load/p.Collapse, 1.5)
	}
	return time.Duration(f * float64(p.Service))
}
