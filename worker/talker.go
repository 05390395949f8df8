package worker

import (
	"context"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
)

const (
	mostVoices = 500 // jobs in one call
	mostTold   = 4 << 20

	talkGap     = 50 * time.Millisecond // between calls, so that more goes with each
	talkTimeout = 5 * time.Second
)

// talker stores what jobs tell: one call at a time, of many jobs. Handlers never
// wait for it. What a job told is stored before its verdict.
type talker struct {
	b      *broker.Broker
	keeper *keeper
	wake   chan struct{}
	health health // of the calls; owned by run

	mu     sync.Mutex // guards all below, and the voices
	dirty  []*voice   // that have something to tell, in order
	flight chan struct{}
	off    bool // the engine cannot keep it
}

func newTalker(w *Worker, k *keeper) *talker {
	return &talker{b: w.b, keeper: k, wake: make(chan struct{}, 1), health: health{log: w.log, what: "storing progress"}}
}

// queue needs t.mu.
func (t *talker) queue(v *voice) {
	if v.queued {
		return
	}
	v.queued = true
	t.dirty = append(t.dirty, v)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run stores until quit is closed.
func (t *talker) run(quit <-chan struct{}) {
	timer := time.NewTimer(forever)
	defer timer.Stop()
	for {
		select {
		case <-t.wake:
		case <-quit:
			return
		}
		gap := talkGap
		if !t.talk() {
			gap = backoff(t.health.failures)
		}
		timer.Reset(gap)
		select {
		case <-timer.C:
		case <-quit:
			return
		}
	}
}

// talk makes one call. It is false when that failed.
func (t *talker) talk() bool {
	t.mu.Lock()
	var out []told
	size := 0
	for len(t.dirty) > 0 && len(out) < mostVoices && size < mostTold {
		v := t.dirty[0]
		t.dirty = t.dirty[1:]
		v.flying = true
		out = append(out, v.takeOut())
		size += out[len(out)-1].size()
	}
	if len(t.dirty) > 0 {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	if len(out) == 0 {
		t.mu.Unlock()
		return true
	}
	flight := make(chan struct{})
	t.flight = flight
	t.mu.Unlock()
	err := t.send(out)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range out {
		o.v.flying = false
		if err != nil && !o.v.closed && !t.off {
			t.putBack(o)
		}
	}
	t.flight = nil
	close(flight)
	if err != nil && !t.off {
		t.health.failed(err)
		return false
	}
	t.health.worked()
	return true
}

// putBack keeps what could not be stored, before what came since. It needs t.mu.
func (t *talker) putBack(o told) {
	v := o.v
	newer, lines, dropped := v.progress, v.lines, v.dropped
	v.progress, v.lines, v.dropped = o.progress, o.lines, o.dropped
	for _, p := range newer {
		v.addProgress(p)
	}
	for _, l := range lines {
		v.addLine(l)
	}
	v.dropped += dropped
	t.queue(v)
}

// send makes the call and heeds the answers.
func (t *talker) send(out []told) error {
	var updates []forebay.ProgressUpdate
	var of []*item
	for i := range out {
		for _, u := range out[i].updates() {
			updates, of = append(updates, u), append(of, out[i].v.it)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), talkTimeout)
	defer cancel()
	errs, err := t.b.Progress(ctx, updates)
	if code := forebay.CodeOf(err); code == forebay.CodeUnsupported || code == forebay.CodeClosed {
		t.mu.Lock()
		t.off, t.dirty = true, nil
		t.mu.Unlock()
		return err
	}
	if err != nil {
		return err
	}
	for i, e := range errs {
		if forebay.CodeOf(e) == forebay.CodeCancelled {
			t.keeper.end(func(it *item) bool { return it == of[i] }, forebay.ErrCancelled)
		}
	}
	return nil
}

// close takes the last that items had to tell, stores it, and lets them tell no
// more. When it returns, no call that names one of them is under way. What cannot
// be stored in time is given up: the verdict matters more.
func (t *talker) close(items []*item) {
	t.mu.Lock()
	var flight chan struct{}
	var last []told
	for _, it := range items {
		v := it.voice
		if v == nil || v.closed {
			continue
		}
		v.closed = true
		if v.flying {
			flight = t.flight
		}
		if v.queued {
			last = append(last, v.takeOut())
		}
	}
	if len(last) > 0 {
		rest := t.dirty[:0:0]
		for _, v := range t.dirty {
			if !v.closed {
				rest = append(rest, v)
			}
		}
		t.dirty = rest
	}
	t.mu.Unlock()
	if flight != nil {
		<-flight
	}
	if len(last) > 0 {
		_ = t.send(last)
	}
}
