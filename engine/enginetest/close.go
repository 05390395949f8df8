package enginetest

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func closeCases() []testCase {
	return []testCase{
		{name: "close/wakes who waits", invariants: []int{11}, run: closeWakes},
		{name: "close/further calls are refused", run: closeRefuses},
		{name: "close/twice", run: closeTwice},
		{name: "close/check says so", needs: Checking, run: closeCheck},
		{name: "close/while in use", invariants: []int{1}, run: closeInUse},
	}
}

func closeWakes(v *env) {
	begin := time.Now()
	wait := v.afterAWhile(func() {
		if err := v.e.Close(); err != nil {
			v.Errorf("close: %v", err)
		}
	})
	v.each(10, func(int) error {
		ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit})
		if forebay.CodeOf(err) != forebay.CodeClosed || len(ds) != 0 {
			v.Errorf("a waiting receive gave %v, %v; want code closed", idsOf(ds), err)
		}
		return nil
	})
	wait()
	v.exactly("waking by close", time.Since(begin), v.unit)
}

func closeCheck(v *env) {
	c := able[engine.Checker](v)
	v.put("a")
	if err := c.Check(v.ctx); err != nil {
		v.failf("check of an engine that stores: %v", err)
	}
	v.counts(testQueue, 1, 0, 0, 0)
	if err := v.e.Close(); err != nil {
		v.failf("close: %v", err)
	}
	if err := c.Check(v.ctx); forebay.CodeOf(err) != forebay.CodeClosed {
		v.failf("check of a closed engine gave %v, want code closed", err)
	}
}

func closeRefuses(v *env) {
	v.put("a")
	d := v.one("a")
	if err := v.e.Close(); err != nil {
		v.failf("close: %v", err)
	}
	calls := map[string]func() error{
		"send":    func() error { _, err := v.e.Send(v.ctx, []forebay.Message{msg("b")}); return err },
		"receive": func() error { _, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1}); return err },
		"extend":  func() error { _, err := v.e.Extend(v.ctx, []forebay.Receipt{d.Receipt}, v.lease()); return err },
		"settle":  func() error { _, err := v.e.Settle(v.ctx, acks([]forebay.Delivery{d})); return err },
		"stats":   func() error { _, err := v.e.Stats(v.ctx); return err },
	}
	if dl, ok := engine.As[engine.DeadLetters](v.e); ok {
		calls["dead"] = func() error { _, err := dl.Dead(v.ctx, engine.DeadQuery{}); return err }
		calls["replay"] = func() error { _, err := dl.Replay(v.ctx, []int64{1}); return err }
		calls["discard"] = func() error { _, err := dl.Discard(v.ctx, []int64{1}); return err }
	}
	if l, ok := engine.As[engine.Locator](v.e); ok {
		calls["locate"] = func() error { _, err := l.Locate(v.ctx, "a"); return err }
	}
	if l, ok := engine.As[engine.Limiter](v.e); ok {
		calls["limits"] = func() error { return l.SetLimits(v.ctx, testQueue, engine.QueueLimits{}) }
	}
	if d, ok := engine.As[engine.Delayer](v.e); ok {
		calls["delay"] = func() error { return d.SetDelay(v.ctx, testQueue, v.unit) }
	}
	if p, ok := engine.As[engine.Purger](v.e); ok {
		calls["purge"] = func() error { _, err := p.Purge(v.ctx, testQueue); return err }
	}
	for what, call := range calls {
		if err := call(); forebay.CodeOf(err) != forebay.CodeClosed {
			v.failf("%s after close gave %v, want code closed", what, err)
		}
	}
}

func closeTwice(v *env) {
	if err := v.e.Close(); err != nil {
		v.failf("close: %v", err)
	}
	if err := v.e.Close(); err != nil && forebay.CodeOf(err) != forebay.CodeClosed {
		v.failf("a second close gave %v, want none or code closed", err)
	}
}

// closeInUse closes under load: each call is done or refused as closed.
func closeInUse(v *env) {
	v.each(17, func(i int) error {
		if i == 16 {
			v.pass(v.unit)
			return v.e.Close()
		}
		for n := 0; ; n++ {
			var err error
			if i%2 == 0 {
				_, err = v.e.Send(v.ctx, []forebay.Message{msg(string(rune('a'+i)) + time.Duration(n).String())})
				v.pass(v.unit / 10) // let time go on in a bubble
			} else {
				var ds []forebay.Delivery
				ds, err = v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 10, Wait: v.unit / 10, Lease: v.lease()})
				if err == nil {
					_, err = v.e.Settle(v.ctx, acks(ds))
				}
			}
			switch forebay.CodeOf(err) {
			case "":
			case forebay.CodeClosed:
				return nil
			default:
				return err
			}
		}
	})
}
