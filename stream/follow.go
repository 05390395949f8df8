package stream

import (
	"context"
	"errors"
	"time"

	"github.com/forebayhq/forebay"
)

var (
	errClosing = errors.New("the server is shutting down")
	errWatcher = errors.New("nobody reads the history any more")
	errBroken  = errors.New("it broke off before its end")
)

// follow gives what happens to next until that has enough, the client's end, or the
// server's. events is asked each time, since next may subscribe anew.
func (s *Streams) follow(ctx context.Context, c *client, events func() <-chan forebay.HistoryEvent,
	next func(e forebay.HistoryEvent, ok bool) (done bool, err error)) error {
	ping, recheck := time.NewTicker(pingEvery), time.NewTicker(recheckEvery)
	defer ping.Stop()
	defer recheck.Stop()
	for {
		var done bool
		var err error
		select {
		case e, ok := <-events():
			done, err = next(e, ok)
		case <-ping.C:
			if err = c.event("ping", "", map[string]time.Time{"at": s.cfg.Now().UTC()}); err == nil {
				err = c.flush()
			}
		case <-recheck.C:
			err = c.access.Check()
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.closing:
			err = errClosing
		}
		if err != nil || done {
			return err
		}
	}
}

// next takes an event of the subscription, and starts anew where that has ended
// since this client was too slow.
func (r *run) next(ctx context.Context, e forebay.HistoryEvent, ok bool) error {
	if ok {
		if err := r.take(e, true); err != nil {
			return err
		}
		return r.client.flush()
	}
	if !r.sub.Lagged() {
		return errWatcher
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := r.look(ctx); err != nil {
		return err
	}
	if err := r.client.event("reset", "", map[string]string{"reason": "this client reads too slowly"}); err != nil {
		return err
	}
	return r.snapshot()
}

// take adds what an event gives to the client to what is flushed next. last: there
// is none after it that is known already.
func (r *run) take(e forebay.HistoryEvent, last bool) error {
	if e.Seq <= r.seq {
		return nil // at the seam of history and subscription
	}
	r.seq = e.Seq
	if e.Seq <= r.unsure && r.fold.covers(&e) {
		return nil
	}
	id := place{r.epoch, e.Seq}.String()
	if e.Type == forebay.HistoryLog {
		return r.client.event("log", id, map[string]any{"at": e.At, "text": e.Text})
	}
	r.fold.apply(&e)
	if err := r.client.event(nameOf(&e), id, r.shape(r.fold.job)); err != nil {
		return err
	}
	if last && ends(&e) {
		return r.end()
	}
	return nil
}

// end sends done, unless the job lives again. What the event did not carry, such as
// a large result, is read.
func (r *run) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	job, err := r.s.cfg.Broker.Job(ctx, r.id)
	switch {
	case forebay.CodeOf(err) == forebay.CodeNotFound: // not kept
		job = r.fold.job
	case err != nil:
		return err
	case !job.State.Final():
		return nil
	}
	r.done = true
	return r.client.event("done", "", r.shape(job))
}
