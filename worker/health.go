package worker

import "log/slog"

// health of one kind of call. It writes one line per change of state, not per try.
type health struct {
	log      *slog.Logger
	what     string
	failures int // in a row
}

func (h *health) failed(err error) {
	if h.failures++; h.failures == 1 {
		h.log.Warn(h.what+" fails; it is tried again until it works", "error", err)
	}
}

func (h *health) worked() {
	if h.failures > 0 {
		h.log.Info(h.what+" works again", "failures", h.failures)
		h.failures = 0
	}
}
