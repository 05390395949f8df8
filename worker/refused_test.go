package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

// A verdict that is refused again and again is told of with its message and the reason, once a minute: else the message
// goes round without a word.
func TestRefusedVerdictIsTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var log bytes.Buffer
		const until = 3*time.Minute + 30*time.Second
		s.hooks.settle = func(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
			if s.since() >= until {
				return s.model.Settle(ctx, ss)
			}
			errs := make([]error, len(ss))
			for i := range errs {
				errs[i] = forebay.Errorf(forebay.CodeUnavailable, "test", "no room for this one")
			}
			return errs, nil
		}
		s.send(named("m", 1, "")...)
		s.run(worker.Config{Lease: time.Minute, Handler: pausing(0), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		pass(until + 2*time.Minute)
		s.finish()
		s.want("completed", s.stats().Completed, 1)
		told := 0
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "a verdict is refused") && strings.Contains(line, "id=m1") && strings.Contains(line, "no room for this one") {
				told++
			}
		}
		if told != 4 {
			t.Errorf("told of %d times in three and a half minutes; once a minute is wanted:\n%s", told, log.String())
		}
	})
}
