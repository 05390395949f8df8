package history

import (
	"context"
	"time"
)

// Live tells of live work that shares the target of a replay.
type Live struct {
	Done   int64 // messages so far, since whenever
	Behind bool  // some have waited for longer than live work should
}

const (
	restMost   = 2 * time.Second // after one batch, where no rate is said
	behindRest = 4               // times what the batch took, where live work is behind
)

// pacer keeps a replay to its rate. Without one it gives way: after a batch beside which
// live work was done it rests for as long as the batch took, and four times as long
// where live work is behind. With none it goes on at once.
type pacer struct {
	rate  int
	live  func(context.Context) (Live, error) // nil: it is taken to be there always
	seen  int64                               // Live.Done
	asked bool
	alone bool // there was no live work beside the last batch
	start time.Time
	due   time.Time
}

// batch is how many go at once: few where they are to come slowly, and beside live work,
// which waits for the disk and the database while one is written.
func (p *pacer) batch() int {
	switch {
	case p.rate == 0 && p.alone:
		return replayBatch
	case p.rate == 0:
		return besideBatch
	}
	return min(max(p.rate/5, 1), replayBatch)
}

func (p *pacer) begin() { p.start = time.Now() }

func (p *pacer) rest(ctx context.Context, n int) error {
	if n == 0 {
		return ctx.Err()
	}
	now := time.Now()
	if p.rate == 0 {
		times, err := p.giveWay(ctx)
		if err != nil {
			return err
		}
		return sleep(ctx, min(times*now.Sub(p.start), restMost))
	}
	if p.due.Before(p.start) { // it was slower than its rate: nothing is made up for
		p.due = p.start
	}
	p.due = p.due.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	return sleep(ctx, p.due.Sub(now))
}

// giveWay tells how many times as long as the batch took the target is left to others.
func (p *pacer) giveWay(ctx context.Context) (time.Duration, error) {
	if p.live == nil {
		return 1, nil
	}
	l, err := p.live(ctx)
	if err != nil {
		return 0, err
	}
	busy := !p.asked || l.Done != p.seen
	p.seen, p.asked = l.Done, true
	p.alone = !busy && !l.Behind
	switch {
	case l.Behind:
		return behindRest, nil
	case busy:
		return 1, nil
	}
	return 0, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
