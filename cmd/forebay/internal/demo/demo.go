package demo

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Server is what the demo asks of the server while it runs.
type Server interface {
	// Counts tells what became of the events so far.
	Counts(ctx context.Context) (Counts, error)
}

// Counts are the server's own.
type Counts struct {
	Written int64  `json:"written"` // settled by the sink
	Dead    int64  `json:"dead"`
	Waiting int64  `json:"waiting"` // not settled yet
	Cause   string `json:"cause"`   // of the newest dead letter
}

// Config of a run. URL, Server and View are required.
type Config struct {
	URL    string
	Server Server
	View   func(Frame)
	Run    string        // begins the ids of this run
	Each   time.Duration // how long ordinary traffic and the campaign take, each; default 3 s
	Rate   int           // ordinary events a second; default 100; the campaign has 50 times as many
}

// Frame is what there is to show at one moment.
type Frame struct {
	Phase    string        `json:"-"`
	Elapsed  time.Duration `json:"-"`
	Seen     Seen          `json:"seen"`
	Counts   Counts        `json:"counts"`
	Rate     int           `json:"-"` // accepted in the last second
	P50, P99 time.Duration `json:"-"`
	Last     bool          `json:"-"`
}

const (
	surge     = 50
	clients   = 8
	frameTime = 200 * time.Millisecond
	drainTime = 20 * time.Second
)

type run struct {
	cfg    Config
	client *client
	begun  time.Time
	events [][]byte

	mu    sync.Mutex
	phase string
}

// Run sends the traffic, waits until all of it has found its place, and gives the
// last frame. Its error says what did not add up.
func Run(ctx context.Context, cfg Config) (Frame, error) {
	if cfg.Each == 0 {
		cfg.Each = 3 * time.Second
	}
	if cfg.Rate == 0 {
		cfg.Rate = 100
	}
	r := &run{
		cfg: cfg, client: newClient(cfg.URL, clients), begun: time.Now(),
		events: bytes.Split(bytes.TrimSpace(traffic), []byte("\n")),
	}
	viewing, stop := context.WithCancel(ctx)
	var view sync.WaitGroup
	view.Go(func() { r.watch(viewing) })
	r.play(ctx)
	err := r.settle(ctx)
	stop()
	view.Wait()
	last, errLast := r.frame(context.WithoutCancel(ctx))
	last.Last = true
	cfg.View(last)
	if err == nil {
		err = errLast
	}
	if err == nil {
		err = last.check()
	}
	return last, err
}

// Poisoned is the id of the event that the database refuses.
func (c Config) Poisoned() string { return c.Run + poison }

func (r *run) enter(phase string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = phase
}

// play is the plot.
func (r *run) play(ctx context.Context) {
	r.enter("an ordinary day")
	r.flow(ctx, r.cfg.Rate, 0)
	r.enter("what goes wrong in the field")
	for _, s := range awkward(r.cfg.Run) {
		r.client.post(ctx, s)
	}
	r.enter(fmt.Sprintf("a campaign: %d times the traffic", surge))
	r.flow(ctx, r.cfg.Rate*surge, 1)
}

// flow sends events at an even rate from several clients for cfg.Each. A client
// that falls behind sends without a pause, so that a slow answer does not hide.
func (r *run) flow(ctx context.Context, rate, part int) {
	var all sync.WaitGroup
	begun := time.Now()
	for c := range clients {
		all.Go(func() {
			gap := time.Second * clients / time.Duration(rate)
			timer := time.NewTimer(0)
			defer timer.Stop()
			for i := 0; ; i++ {
				due := time.Duration(i)*gap + gap*time.Duration(c)/clients
				if due >= r.cfg.Each || time.Since(begun) >= r.cfg.Each {
					return
				}
				timer.Reset(due - time.Since(begun))
				select {
				case <-timer.C:
				case <-ctx.Done():
					return
				}
				r.client.post(ctx, ordinary(r.events, part*1_000_000+i*clients+c))
			}
		})
	}
	all.Wait()
}

// settle waits until every accepted event has been written or is a dead letter.
func (r *run) settle(ctx context.Context) error {
	r.enter("the database catches up")
	late := fmt.Errorf("after %s, events are still on their way", drainTime)
	ctx, cancel := context.WithTimeoutCause(ctx, drainTime, late)
	defer cancel()
	tick := time.NewTicker(frameTime / 4)
	defer tick.Stop()
	for {
		counts, err := r.cfg.Server.Counts(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		r.client.mu.Lock()
		accepted := int64(r.client.seen.Accepted)
		r.client.mu.Unlock()
		if err == nil && counts.Waiting == 0 && counts.Written+counts.Dead >= accepted {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *run) watch(ctx context.Context) {
	tick := time.NewTicker(frameTime)
	defer tick.Stop()
	var past []int // accepted, by frame
	const second = int(time.Second / frameTime)
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		f, err := r.frame(ctx)
		if err != nil {
			continue // the next frame, or the end, tells
		}
		past = append(past, f.Seen.Accepted)
		if len(past) > second {
			f.Rate = f.Seen.Accepted - past[len(past)-1-second]
		}
		r.cfg.View(f)
	}
}

func (r *run) frame(ctx context.Context) (Frame, error) {
	counts, err := r.cfg.Server.Counts(ctx)
	r.mu.Lock()
	f := Frame{Phase: r.phase, Elapsed: time.Since(r.begun), Counts: counts}
	r.mu.Unlock()
	c := r.client
	c.mu.Lock()
	f.Seen = c.seen
	f.Seen.Reasons = slices.Clone(c.seen.Reasons)
	took := slices.Clone(c.latencies)
	c.mu.Unlock()
	slices.Sort(took)
	if n := len(took); n > 0 {
		f.P50, f.P99 = took[n/2], took[n*99/100]
	}
	return f, err
}

// check holds the numbers against each other.
func (f Frame) check() error {
	switch sum := f.Counts.Written + f.Counts.Dead; {
	case f.Seen.Failed > 0:
		return fmt.Errorf("%d requests got no verdict", f.Seen.Failed)
	case int64(f.Seen.Accepted) != sum:
		return fmt.Errorf("the numbers do not add up: %d accepted, but %d written and %d dead",
			f.Seen.Accepted, f.Counts.Written, f.Counts.Dead)
	}
	return nil
}
