package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/history"
	"github.com/forebayhq/forebay/worker"
)

// writing is a target.
type writing func(ctx context.Context, entries []engine.LogEntry) error

func (w writing) Write(ctx context.Context, _ string, entries []engine.LogEntry) (int, error, error) {
	return 0, nil, w(ctx, entries)
}

func into(target history.Target) func(history.Request) (history.Target, error) {
	return func(history.Request) (history.Target, error) { return target, nil }
}

// A server that stops does not wait for a replay, whatever that is at: the batch is given
// up, and what was taken before it is not done again.
func TestReplayLeavesWhenTheServerStops(t *testing.T) {
	for name, stuck := range map[string]func(context.Context) error{
		"the target hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"the target refuses": func(context.Context) error { return errors.New("no room") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := openBroker(t)
				sendEvents(t, b, "e", 5000)
				got := map[string]int{}
				down := true
				target := writing(func(ctx context.Context, entries []engine.LogEntry) error {
					if down && len(got) >= 2000 {
						return stuck(ctx)
					}
					for i := range entries {
						got[entries[i].Message.ID]++
					}
					return nil
				})
				r := &history.Replayer{Log: b, Documents: b, Target: into(target)}
				req := history.Request{Into: history.IntoSink, Selection: history.Selection{Queue: event.Queue}}
				drained := make(chan struct{})
				time.AfterFunc(time.Minute, func() { close(drained) })
				begin := time.Now()
				if _, err := replay(forebay.WithDraining(t.Context(), drained), t, r, "r", req); !errors.Is(err, forebay.ErrDraining) {
					t.Errorf("it ended with %v", err)
				}
				if took := time.Since(begin); took != time.Minute {
					t.Errorf("it left %s after the server began to stop", took-time.Minute)
				}
				down = false
				if out, err := replay(t.Context(), t, r, "r", req); err != nil || out.Messages != 5000 {
					t.Errorf("it ended with %+v, %v", out, err)
				}
				for id, n := range got {
					if n != 1 {
						t.Fatalf("%s was written %d times", id, n)
					}
				}
				if len(got) != 5000 {
					t.Errorf("%d were written", len(got))
				}
			})
		})
	}
}

// Without a rate a replay writes 100 at a time and leaves the sink to live work for as long
// as that took, for longer where that is behind. Where there is none it writes 1,000, and goes on at once.
func TestReplayGivesWay(t *testing.T) {
	const batch = 100 * time.Millisecond
	for name, c := range map[string]struct {
		live func(context.Context) (history.Live, error)
		want time.Duration
	}{
		"not told": {nil, 30*batch + 29*batch},
		"none":     {func(context.Context) (history.Live, error) { return history.Live{Done: 7}, nil }, 5*batch + batch}, // twice 100 to see that
		"some":     {func(context.Context) (history.Live, error) { return history.Live{Done: time.Now().UnixNano()}, nil }, 30*batch + 29*batch},
		"behind":   {func(context.Context) (history.Live, error) { return history.Live{Behind: true}, nil }, 30*batch + 116*batch},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := openBroker(t)
				sendEvents(t, b, "e", 3000)
				target := writing(func(context.Context, []engine.LogEntry) error {
					time.Sleep(batch)
					return nil
				})
				r := &history.Replayer{Log: b, Documents: b, Target: into(target), Live: c.live}
				begin := time.Now()
				if _, err := replay(t.Context(), t, r, "r", history.Request{Into: history.IntoSink, Selection: history.Selection{Queue: event.Queue}}); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took != c.want {
					t.Errorf("3,000 took %s, want %s", took, c.want)
				}
			})
		})
	}
}

// Progress is that of what is meant, wherever it lies in the log.
func TestProgressOfAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBroker(t)
		var from, to time.Time
		for _, at := range []*time.Time{&from, &to, nil} {
			sendEvents(t, b, time.Now().Format("15"), 2000)
			time.Sleep(time.Hour)
			if at != nil {
				*at = time.Now()
			}
			if at == &to {
				time.Sleep(time.Hour)
			}
		}
		payload, err := json.Marshal(history.Request{Into: history.IntoSink, DryRun: true, Selection: history.Selection{Queue: event.Queue, From: from, To: to}})
		if err != nil {
			t.Fatal(err)
		}
		var told []float64
		j := worker.NewJob(forebay.Delivery{Message: forebay.Message{ID: "r", Payload: payload}}, func(p *forebay.Progress, _ *forebay.LogLine) {
			if p != nil {
				told = append(told, p.Percent)
			}
		})
		result, err := (&history.Replayer{Log: b, Documents: b}).HandleJob(t.Context(), j)
		var out history.Outcome
		if err != nil || json.Unmarshal(result, &out) != nil || out.Messages != 2000 {
			t.Fatalf("it ended with %s, %v", result, err)
		}
		if len(told) != 2 || told[0] < 40 || told[0] > 60 || told[1] != 100 {
			t.Errorf("it told of %v", told)
		}
	})
}
