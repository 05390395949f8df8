package worker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/worker/adapt"
)

// Concurrency is how many handlers, or batches, run at once.
type Concurrency struct {
	Fixed int // so many; 0: as many as the back end takes, within the bounds
	Min   int // 0: 1
	Max   int // 0: 100, and no more than Config.MostConcurrency
}

// Bounds of a concurrency that tunes itself, where none are given.
const (
	defaultMax  = 100
	defaultMost = 1000
)

func (c Concurrency) filled(most int) Concurrency {
	if c.Fixed == 0 {
		fill(&c.Min, 1)
		fill(&c.Max, max(c.Min, min(defaultMax, most)))
	}
	return c
}

func (c Concurrency) check(most int) error {
	switch {
	case c.Fixed < 0 || c.Fixed > most:
		return wrongField("concurrency", "%d; 1 to %d are allowed", c.Fixed, most)
	case c.Fixed > 0:
		return nil
	case c.Min < 1 || c.Min > most:
		return wrongField("concurrencyMin", "%d; 1 to %d are allowed", c.Min, most)
	case c.Max < c.Min || c.Max > most:
		return wrongField("concurrencyMax", "%d; %d to %d are allowed", c.Max, c.Min, most)
	}
	return nil
}

func (c Concurrency) limiter() *adapt.Limiter { return adapt.New(adapt.Config{Min: c.Min, Max: c.Max}) }

func wrongField(field, format string, args ...any) *forebay.Error {
	e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
	e.Field = field
	return e
}

// most is how many may ever run at once.
func (c *Config) most() int {
	n := max(c.Concurrency, 1)
	if c.Auto != nil {
		n = max(n, c.Auto.filled(defaultMax).Max)
	}
	if c.MostConcurrency > 0 {
		return max(n, c.MostConcurrency)
	}
	if c.Batch == nil {
		return min(max(n, defaultMost), engine.MaxReceive)
	}
	return n
}

// concurrency is what the worker begins with.
func (c *Config) concurrency() Concurrency {
	if c.Auto == nil {
		return Concurrency{Fixed: c.Concurrency}
	}
	return Concurrency{Min: c.Auto.Min, Max: c.Auto.Max}.filled(c.most())
}

// Concurrency tells how many handlers, or batches, may run at once.
func (w *Worker) Concurrency() Concurrency { return *w.concurrency.Load() }

// Tune sets how many handlers, or batches, may run at once, from now on until the worker
// ends. Those that run go on.
func (w *Worker) Tune(c Concurrency) error {
	c = c.filled(w.most)
	if err := c.check(w.most); err != nil {
		return err
	}
	w.concurrency.Store(&c)
	select {
	case w.tuned <- struct{}{}:
	default: // it is told already
	}
	return nil
}

// tune takes over what Tune has set.
func (l *loop) tune() {
	c := l.w.Concurrency()
	l.auto = nil
	if c.Fixed == 0 {
		l.auto = c.limiter()
	}
	l.fit()
}

// fit makes the limit of now hold for what begins next.
func (l *loop) fit() {
	n := l.w.Concurrency().Fixed
	shown := n
	if l.auto != nil {
		n, shown = l.auto.Limit(), l.auto.Around()
	}
	l.w.slots.Store(int64(shown))
	l.dispatch.resize(n)
	l.mostUnsettled = 2*n + 1000
	if l.w.cfg.Batch != nil {
		l.mostUnsettled = 2 * n * l.w.cfg.BatchMax
	}
}

// howEnded is what the end of a work says of the back end.
func howEnded(k *work, errs []error) adapt.End {
	switch cause := context.Cause(k.ctx); {
	case cause == nil:
	case errors.Is(cause, forebay.ErrTimeout):
		return adapt.Overload
	default:
		return adapt.Ignored // it was interrupted
	}
	for _, err := range errs {
		if overload(err) {
			return adapt.Overload
		}
	}
	return adapt.Done
}

// overload tells an error by which a back end says that it is too much: it names a wait, it
// is over a limit or out of resources, or it did not answer in time. What else a handler
// fails with is its own.
func overload(err error) bool {
	if err == nil {
		return false
	}
	if _, waits := forebay.RetryDelay(err); waits {
		return true
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, forebay.ErrTimeout) {
		return true
	}
	switch forebay.CodeOf(err) {
	case forebay.CodeLimited, forebay.CodeUnavailable, forebay.CodeFull:
		return true
	}
	var database interface{ SQLState() string }
	if errors.As(err, &database) && short(database.SQLState()) {
		return true
	}
	var timed interface{ Timeout() bool }
	if errors.As(err, &timed) && timed.Timeout() {
		return true
	}
	return overloadCode(forebay.CauseOf(err, time.Time{}).Code)
}

// overloadCode tells codes of causes that say so.
func overloadCode(code string) bool {
	switch code {
	case "http_429", "http_503", "timeout":
		return true
	}
	return short(code)
}

// short tells the SQLSTATEs of a database that is short of something: 53xxx, and a
// statement that took too long.
func short(state string) bool {
	return len(state) == 5 && strings.HasPrefix(state, "53") || state == "57014"
}
