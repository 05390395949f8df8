package outbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/outbox"
)

// Stats of the far engine are away when it is.
func (f *far) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	f.mu.Lock()
	mode := f.mode
	f.mu.Unlock()
	switch mode {
	case "hangs":
		<-ctx.Done()
		return nil, ctx.Err()
	case "refuses":
		return nil, forebay.Errorf(forebay.CodeUnavailable, "far", "away")
	}
	return f.Engine.Stats(ctx, queues...)
}

// What waits here is told while the remote engine is away, with what that one told last.
func TestStatsWhileAway(t *testing.T) {
	for _, mode := range []string{"refuses", "hangs"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStand(t, enginetest.NewModel(), outbox.Config{})
			defer s.stop()
			s.sent(msg("a"), msg("b"))
			counted := func(want int64) {
				t.Helper()
				for _, names := range [][]string{{"q"}, nil} {
					all, err := s.box.Stats(t.Context(), names...)
					if err != nil || len(all) != 1 || all[0].Queue != "q" || all[0].Waiting != want {
						t.Errorf("%s: stats of %v are %+v, %v; want %d waiting", mode, names, all, err, want)
					}
				}
			}
			counted(2)
			s.far.set(mode)
			s.sent(msg("c"))
			counted(3)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.box.Stats(ended, "q"); err == nil {
				t.Errorf("%s: a call whose context has ended is answered", mode)
			}
			s.far.set("")
		})
	}
}

// What others put into a queue of the outbox, such as a replay in the local engine
// itself, is found and forwarded.
func TestLooksForWhatItHasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := enginetest.NewModel()
		s := newStand(t, local, outbox.Config{})
		defer s.stop()
		s.sent(msg("a"))
		s.arrive("a")
		m := msg("b")
		m.Queue = "outbox-q"
		if res, err := local.Send(t.Context(), []forebay.Message{m}); err != nil || res[0].Err != nil {
			t.Fatal(res, err)
		}
		time.Sleep(time.Minute)
		s.arrive("b")
		s.waits(0)
	})
}
