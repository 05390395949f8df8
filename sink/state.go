package sink

import (
	"log/slog"
	"sync"
	"time"
)

// State of a sink.
type State struct {
	Paused bool
	Since  time.Time // of the state; zero: since the start
	Reason string    // the error that paused it
}

// gate holds the state, which all batches in flight share.
type gate struct {
	mu    sync.Mutex
	state State
}

func (g *gate) current() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state
}

// change enters a state and gives the one before; false: it is in it already.
func (g *gate) change(s State) (State, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.state
	if before.Paused == s.Paused {
		return before, false
	}
	g.state = s
	return before, true
}

func (w *Writer) pause(err error) {
	s := State{Paused: true, Since: w.cfg.Now(), Reason: err.Error()}
	if _, changed := w.gate.change(s); !changed {
		return
	}
	w.cfg.Logger.Warn("sink paused", slog.String("sink", w.cfg.Name), slog.String("reason", s.Reason))
	if w.cfg.OnState != nil {
		w.cfg.OnState(s)
	}
}

func (w *Writer) resume() {
	if !w.gate.current().Paused {
		return
	}
	s := State{Since: w.cfg.Now()}
	before, changed := w.gate.change(s)
	if !changed {
		return
	}
	w.cfg.Logger.Info("sink resumed", slog.String("sink", w.cfg.Name),
		slog.Duration("paused", s.Since.Sub(before.Since)))
	if w.cfg.OnState != nil {
		w.cfg.OnState(s)
	}
}
