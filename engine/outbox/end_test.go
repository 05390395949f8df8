package outbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/outbox"
)

// full is a local engine whose disk takes no verdicts for a while.
type full struct {
	engine.Engine
	on atomic.Bool
}

func (f *full) Unwrap() engine.Engine { return f.Engine }

func (f *full) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	if f.on.Load() {
		return nil, forebay.Errorf(forebay.CodeFull, "full", "no room")
	}
	return f.Engine.Settle(ctx, ss)
}

// What was forwarded while the local disk is full has left as soon as there is room again, and
// holds up nothing that is behind it in its group until its lease ends.
func TestForwardedWhileDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := &full{Engine: enginetest.NewModel()}
		remote := &far{Engine: hidden{enginetest.NewModel()}}
		box, err := outbox.New(remote, local, outbox.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := &stand{T: t, far: remote, box: box}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- box.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		remote.set("refuses")
		s.sent(msg("a"), msg("b"))
		local.on.Store(true)
		remote.set("")
		time.Sleep(20 * time.Second)
		s.waits(2)
		local.on.Store(false)
		time.Sleep(15 * time.Second)
		s.waits(0)
		s.sent(msg("c"))
		s.arrive("a", "b", "c")
	})
}
