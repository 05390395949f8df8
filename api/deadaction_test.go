package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/worker"
)

// direct calls a handler without a network, so that it works in a bubble.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// graveyard is an API over the embedded engine, with workers, in a bubble.
type graveyard struct {
	*api.Client
	t      *testing.T
	broker *broker.Broker
	stop   func()        // ends the worker that acts on dead letters
	idle   func()        // ends the one that works on what is replayed; nil: there is none
	drain  time.Duration // of the worker that acts

	mu    sync.Mutex
	fails error          // what the handler of the jobs says
	ran   map[string]int // by the id of the dead job, or its own
}

func inGraveyard(t *testing.T, f func(t *testing.T, g *graveyard)) {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := &graveyard{t: t, ran: make(map[string]int), drain: time.Millisecond}
		g.broker = must[*broker.Broker](t)(broker.New(must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{})), broker.Config{}))
		ring := must[*keyring.Ring](t)(keyring.Open(filepath.Join(dir, "keys.json"), keyring.Config{}))
		bad := must[*badrow.Store](t)(badrow.Open(filepath.Join(dir, "bad.db"), badrow.Config{}))
		a := must[*api.API](t)(api.New(api.Config{Broker: g.broker, Ring: ring, Bad: bad, Loopback: true, Version: "test"}))
		mux := http.NewServeMux()
		a.Register(mux)
		g.Client = must[*api.Client](t)(api.NewClient("http://127.0.0.1", "", &http.Client{Transport: direct{mux}}))
		quiet := g.run(g.broker.Watcher().Run)
		g.restart()
		f(t, g)
		for _, end := range []func(){g.stop, g.idle, quiet} {
			if end != nil {
				end()
			}
		}
		for _, c := range []func() error{g.broker.Close, bad.Close, ring.Close} {
			if err := c(); err != nil {
				t.Error(err)
			}
		}
	})
}

func (g *graveyard) run(do func(context.Context) error) (end func()) {
	ctx, stop := context.WithCancel(g.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	return func() {
		stop()
		if err := <-ended; err != nil {
			g.t.Error(err)
		}
	}
}

// restart ends the worker of actions, as a restart of the server would, and begins another.
func (g *graveyard) restart() {
	if g.stop != nil {
		g.stop()
	}
	w := must[*worker.Worker](g.t)(worker.New(g.broker, worker.Config{Queue: api.BulkQueue, DrainTimeout: g.drain, Jobs: worker.JobFunc(
		func(ctx context.Context, j *worker.Job) ([]byte, error) {
			if j.Kind == api.DeadKind {
				return api.DeadHandler(g.broker).HandleJob(ctx, j)
			}
			return api.BulkHandler(g.broker).HandleJob(ctx, j)
		})}))
	g.stop = g.run(w.Run)
}

func (g *graveyard) handle(_ context.Context, j *worker.Job) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fails == nil {
		g.ran[j.Headers[broker.HeaderReplayOf]]++
	}
	return nil, g.fails
}

func (g *graveyard) mend(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fails = err
}

// bury lets n jobs die of three causes: six, three and one of ten.
func (g *graveyard) bury(n int) {
	g.t.Helper()
	texts := []string{"no user %d", "order '%d' is unknown", "card %d declined"}
	for done := 0; done < n; {
		var msgs []forebay.Message
		for i := done; i < min(n, done+1000); i++ {
			msgs = append(msgs, forebay.Message{ID: fmt.Sprint("j", i), Queue: "buried", Kind: "k", Payload: []byte("{}"), Group: fmt.Sprint("g", i%97), Job: &forebay.JobOptions{}})
		}
		must[[]forebay.SendResult](g.t)(g.broker.Send(g.t.Context(), msgs))
		for left := len(msgs); left > 0; {
			ds := must[[]forebay.Delivery](g.t)(g.broker.Receive(g.t.Context(), engine.Receive{Queue: "buried", Max: left}))
			ss := make([]forebay.Settlement, len(ds))
			for i, d := range ds {
				cause := 0
				if done%10 >= 6 {
					cause = 1
				}
				if done%10 == 9 {
					cause = 2
				}
				ss[i] = forebay.Settlement{Receipt: d.Receipt, Queue: "buried", Verdict: forebay.Dead, Cause: forebay.Cause{Code: "x", Message: fmt.Sprintf(texts[cause], done)}}
				done++
			}
			must[[]error](g.t)(g.broker.Settle(g.t.Context(), ss))
			left -= len(ds)
		}
	}
}

func (g *graveyard) at(id string) api.DeadWork {
	g.t.Helper()
	return must[api.DeadWork](g.t)(g.DeadAction(g.t.Context(), id))
}

// Ten thousand dead letters of three causes: grouped as three; a canary of ten, then all
// at 500 a second, cancelled half-way, interrupted by a restart, and continued; each is
// done once, and the totals are those of all runs.
func TestReplayOfTenThousand(t *testing.T) {
	inGraveyard(t, func(t *testing.T, g *graveyard) {
		const all, rate = 10_000, 500
		ctx := t.Context()
		g.bury(all)
		groups := must[api.DeadGroupList](t)(g.DeadGroups(ctx, api.DeadGroupFilter{Order: "largest"}, "", 10))
		wantGroups(t, groups)

		// The queue is not worked on, so that the canary has no verdict; then its cause is not mended.
		canary := &api.Canary{Count: 10, Timeout: api.Duration(time.Minute)}
		first := must[api.DeadWork](t)(g.ActOnDead(ctx, api.DeadAction{Action: "replay", DeadFilter: api.DeadFilter{Group: groups.Items[2].Fingerprint}, Canary: canary}))
		time.Sleep(2 * time.Minute)
		if s := g.at(first.ID); s.State != api.DeadStopped || s.Canary.Verdict != "timeout" || len(s.Canary.Failures) != 10 || s.Done != 10 {
			t.Errorf("without a verdict: %+v %+v", s, s.Canary)
		}
		g.mend(errors.New("still broken"))
		g.workBuried()
		must[api.DeadWork](t)(g.ChangeDeadAction(ctx, first.ID, "resume"))
		time.Sleep(2 * time.Second)
		if s := g.at(first.ID); s.State != api.DeadStopped || s.Canary.Verdict != "lost" || s.Canary.Lost == 0 || s.Done != 20 || s.Total != 1000 {
			t.Errorf("lost: %+v %+v", s, s.Canary)
		}
		g.mend(nil)
		time.Sleep(time.Hour) // what was lost is tried again by its backoff

		begun := time.Now()
		w := must[api.DeadWork](t)(g.ActOnDead(ctx, api.DeadAction{Action: "replay", All: true, Canary: canary, Rate: rate}))
		if w.Total != all-20 || w.State != api.DeadRunning {
			t.Errorf("begun: %+v", w)
		}
		time.Sleep(2 * time.Second)
		g.idle() // the rest is looked at in the end
		g.idle = nil
		time.Sleep(8 * time.Second)
		half := must[api.DeadWork](t)(g.ChangeDeadAction(ctx, w.ID, "cancel"))
		time.Sleep(time.Second)
		half = g.at(w.ID)
		if most := 10 + rate*11 + 50; half.State != api.DeadCancelled || half.Done < 4000 || half.Done > most || half.Canary.Verdict != "passed" || half.Canary.Passed != 10 {
			t.Errorf("half-way: %+v %+v", half, half.Canary)
		}
		time.Sleep(time.Minute)
		if s := g.at(w.ID); s.Done != half.Done {
			t.Errorf("it went on: %d, then %d", half.Done, s.Done)
		}
		must[api.DeadWork](t)(g.ChangeDeadAction(ctx, w.ID, "resume"))
		time.Sleep(3 * time.Second)
		g.restart()
		time.Sleep(3 * time.Second)
		must[api.DeadWork](t)(g.ChangeDeadAction(ctx, w.ID, "pause"))
		_, err := g.ChangeDeadAction(ctx, w.ID, "pause")
		wantCode(t, err, forebay.CodeConflict)
		must[api.DeadWork](t)(g.ChangeDeadAction(ctx, w.ID, "resume"))
		time.Sleep(time.Minute)
		end := g.at(w.ID)
		if end.State != api.DeadCompleted || end.Done != all-20 || end.Failed != 0 || end.Runs < 4 {
			t.Errorf("the end: %+v", end)
		}
		if j := must[api.Job](t)(g.Job(ctx, end.JobID)); j.State != forebay.StateCompleted || j.Progress.Percent != 100 {
			t.Errorf("its job: %+v", j)
		}
		if left := must[api.DeadList](t)(g.Dead(ctx, api.DeadFilter{}, 0, 10)); len(left.Items) > 0 {
			t.Errorf("left are %+v", left.Items)
		}
		t.Logf("10,000 in %s, of which a minute and a half was waiting", time.Since(begun))
		g.eachOnce(all)
		if list := must[[]api.DeadWork](t)(g.DeadActions(ctx)); len(list) != 2 || list[0].ID != w.ID {
			t.Errorf("actions: %+v", list)
		}
	})
}

func wantGroups(t *testing.T, groups api.DeadGroupList) {
	t.Helper()
	got := ""
	for _, v := range groups.Items {
		got += fmt.Sprintf("%s×%d ", v.Text, v.Count)
	}
	if want := "no user #×6000 order … is unknown×3000 card # declined×1000 "; got != want || groups.Partial {
		t.Fatalf("groups: %s, want %s", got, want)
	}
}

// eachOnce checks that so many jobs ended well, each once.
func (g *graveyard) eachOnce(all int) {
	g.t.Helper()
	for {
		ds := must[[]forebay.Delivery](g.t)(g.broker.Receive(g.t.Context(), engine.Receive{Queue: "buried", Max: 1000}))
		if len(ds) == 0 {
			break
		}
		ss := make([]forebay.Settlement, len(ds))
		for i, d := range ds {
			g.ran[d.Headers[broker.HeaderReplayOf]]++
			ss[i] = forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Ack}
		}
		must[[]error](g.t)(g.broker.Settle(g.t.Context(), ss))
	}
	for id, n := range g.ran {
		if n != 1 {
			g.t.Errorf("%s ran %d times", id, n)
		}
	}
	if len(g.ran) != all {
		g.t.Errorf("%d ran, want %d", len(g.ran), all)
	}
}

// workBuried lets what is replayed be worked on.
func (g *graveyard) workBuried() {
	w := must[*worker.Worker](g.t)(worker.New(g.broker, worker.Config{Queue: "buried", Concurrency: 50, Jobs: worker.JobFunc(g.handle)}))
	g.idle = g.run(w.Run)
}
