package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// lister is an engine that lists dead letters, newest first, and no more.
type lister struct {
	engine.Engine
	engine.DeadLetters
	engine.Jobs
}

func letters(t *testing.T) (whole, portable *broker.Broker) {
	t.Helper()
	e, f := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{})), must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))
	return open(t, e, broker.Config{}), open(t, lister{f, f, f}, broker.Config{})
}

func receiveOf(t *testing.T, b *broker.Broker, r engine.Receive) []forebay.Delivery {
	t.Helper()
	return must[[]forebay.Delivery](t)(b.Receive(t.Context(), r))
}

// die sends messages and lets them die.
func die(t *testing.T, b *broker.Broker, text string, msgs ...forebay.Message) {
	t.Helper()
	for _, r := range must[[]forebay.SendResult](t)(b.Send(t.Context(), msgs)) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	for _, m := range msgs {
		ds := receiveOf(t, b, engine.Receive{Queue: m.Queue, Max: 1})
		errs := must[[]error](t)(b.Settle(t.Context(), []forebay.Settlement{
			{Receipt: ds[0].Receipt, Queue: m.Queue, Verdict: forebay.Dead, Cause: forebay.Cause{Code: "x", Message: fmt.Sprintf(text, m.ID)}},
		}))
		if errs[0] != nil {
			t.Fatal(errs)
		}
	}
}

// Engines without groups are listed through the broker, with the same answers.
func TestDeadGroupsOfEveryEngine(t *testing.T) {
	t.Parallel()
	whole, portable := letters(t)
	for _, b := range []*broker.Broker{whole, portable} {
		die(t, b, "no user '%s'", message("a"), message("b"), message("c"))
		die(t, b, "no order '%s'", message("d"))
		for order, want := range map[engine.DeadOrder]string{"": "1 3", engine.DeadNewest: "1 3", engine.DeadLargest: "3 1"} {
			page, partial, err := b.DeadGroups(t.Context(), engine.DeadGroupQuery{Order: order})
			if err != nil || partial || len(page.Groups) != 2 || fmt.Sprint(page.Groups[0].Count, page.Groups[1].Count) != want {
				t.Fatalf("%s: %+v %v %v", order, page, partial, err)
			}
		}
		page, _, _ := b.DeadGroups(t.Context(), engine.DeadGroupQuery{Code: "x", Order: engine.DeadLargest})
		g := page.Groups[0]
		found := must[[]forebay.DeadLetter](t)(b.Dead(t.Context(), engine.DeadQuery{Group: g.Fingerprint}))
		if len(found) != 3 || found[0].Fingerprint != g.Fingerprint || found[0].Seq != g.Sample || !strings.HasPrefix(g.Text, "no user") {
			t.Errorf("%+v of %+v", found, g)
		}
		seqs := must[[]int64](t)(b.DeadSeqs(t.Context(), engine.DeadQuery{Group: g.Fingerprint, Limit: 2}, found[2].Seq))
		if !slices.Equal(seqs, []int64{found[1].Seq, found[0].Seq}) {
			t.Errorf("oldest first: %v of %+v", seqs, found)
		}
		if _, _, err := b.DeadGroups(t.Context(), engine.DeadGroupQuery{Order: "colour"}); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Error(err)
		}
	}
}

// A replay is a new job that is linked to the old one, in its group's order, without its
// attempts; what others know by its id, and what is no job, is itself again.
func TestReplayIsANewJob(t *testing.T) {
	t.Parallel()
	whole, portable := letters(t)
	for name, b := range map[string]*broker.Broker{"whole": whole, "portable": portable} {
		job := func(id string, change func(*forebay.Message)) forebay.Message {
			m := message(id)
			m.Group, m.DedupKey, m.Job = "g", "key "+id, &forebay.JobOptions{Owner: "o"}
			if change != nil {
				change(&m)
			}
			return m
		}
		plain := message("plain")
		plain.Group = "g"
		die(t, b, "%s", job("a", nil), plain, job("child", func(m *forebay.Message) { m.Job.Parent = "p" }),
			job("step", func(m *forebay.Message) { m.Headers = map[string]string{"flow": "f"} }), job("b", nil))
		seqs := must[[]int64](t)(b.DeadSeqs(t.Context(), engine.DeadQuery{}, 0))
		results := must[[]broker.ReplayResult](t)(b.ReplayDead(t.Context(), []int64{seqs[4], seqs[3], 999, seqs[2], seqs[1], seqs[0]}))
		if forebay.CodeOf(results[2].Err) != forebay.CodeNotFound {
			t.Errorf("%s: %+v", name, results)
		}
		var got []string
		for range 5 {
			d := receiveOf(t, b, engine.Receive{Queue: "q", Max: 1})[0]
			of := d.Headers[broker.HeaderReplayOf]
			got = append(got, d.ID)
			if of != "" {
				got[len(got)-1] = "new of " + of
				if d.ID == of || d.Attempt != 1 || d.Job.Owner != "o" || d.Job.Parent != "" || d.DedupKey != "" || d.Headers[broker.HeaderReplays] != "1" {
					t.Errorf("%s: %+v", name, d)
				}
			}
			must[[]error](t)(b.Settle(t.Context(), []forebay.Settlement{{Receipt: d.Receipt, Queue: "q", Verdict: forebay.Ack}}))
		}
		if want := "[new of a plain child step new of b]"; fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
		if left := must[[]int64](t)(b.DeadSeqs(t.Context(), engine.DeadQuery{}, 0)); len(left) > 0 {
			t.Errorf("%s: left are %v", name, left)
		}
	}
}

// A replay that was interrupted between its two steps is not done twice.
func TestReplayIsRepeatable(t *testing.T) {
	t.Parallel()
	e := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))
	f := &tenacious{DeadLetters: e, refuse: true}
	b := open(t, struct {
		engine.Engine
		*tenacious
		engine.Jobs
	}{e, f, e}, broker.Config{})
	m := message("a")
	m.Job = &forebay.JobOptions{}
	die(t, b, "%s", m)
	seqs := must[[]int64](t)(b.DeadSeqs(t.Context(), engine.DeadQuery{}, 0))
	if _, err := b.ReplayDead(t.Context(), seqs); err == nil {
		t.Fatal("the refusal is not told")
	}
	f.refuse = false
	results := must[[]broker.ReplayResult](t)(b.ReplayDead(t.Context(), seqs))
	if ds := receiveOf(t, b, engine.Receive{Queue: "q", Max: 10}); results[0].Err != nil || len(ds) != 1 || ds[0].ID != results[0].ID {
		t.Errorf("%+v, %v", results, ds)
	}
}

// tenacious refuses to discard while it is told to.
type tenacious struct {
	engine.DeadLetters
	refuse bool
}

func (f *tenacious) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	if f.refuse {
		return nil, errors.New("away")
	}
	return f.DeadLetters.Discard(ctx, seqs)
}

func TestReplayEdited(t *testing.T) {
	t.Parallel()
	b, _ := letters(t)
	m := message("a")
	m.Job, m.Headers = &forebay.JobOptions{}, map[string]string{"h": "v", "drop": "v"}
	child := message("child")
	child.Job = &forebay.JobOptions{Parent: "p"}
	die(t, b, "%s", m, child)
	seqs := must[[]int64](t)(b.DeadSeqs(t.Context(), engine.DeadQuery{}, 0))
	for _, c := range []struct {
		seq  int64
		edit broker.ReplayEdit
		code forebay.Code
	}{
		{99, broker.ReplayEdit{}, forebay.CodeNotFound},
		{seqs[1], broker.ReplayEdit{Payload: []byte("1")}, forebay.CodeConflict},
		{seqs[0], broker.ReplayEdit{Queue: "no queue"}, forebay.CodeInvalid},
		{seqs[0], broker.ReplayEdit{Payload: make([]byte, forebay.MaxPayloadBytes+1)}, forebay.CodeTooLarge},
		{seqs[0], broker.ReplayEdit{Attempts: 5000}, forebay.CodeInvalid},
	} {
		if _, err := b.ReplayEdited(t.Context(), c.seq, c.edit); forebay.CodeOf(err) != c.code {
			t.Errorf("%+v: %v, want %s", c.edit, err, c.code)
		}
	}
	urgent := forebay.At(0)
	id := must[string](t)(b.ReplayEdited(t.Context(), seqs[0], broker.ReplayEdit{
		Queue: "r", Payload: []byte(`{"n":2}`), Headers: map[string]string{"drop": "", "new": "x"}, Priority: &urgent, Attempts: 3, Timeout: time.Minute,
	}))
	d := receiveOf(t, b, engine.Receive{Queue: "r", Max: 1})[0]
	if d.ID != id || string(d.Payload) != `{"n":2}` || d.Headers["h"] != "v" || d.Headers["drop"] != "" || d.Headers["new"] != "x" ||
		d.Priority.Level() != 0 || d.Limits.Attempts != 3 || d.Job.Timeout != time.Minute || d.Headers[broker.HeaderReplayOf] != "a" {
		t.Errorf("%+v", d)
	}
	_, err := b.ReplayEdited(t.Context(), seqs[0], broker.ReplayEdit{})
	want(t, "a second time", forebay.CodeOf(err), forebay.CodeNotFound)
}

// Dead letters that grow are alerted of once a window, however many come; those over the
// bound of their queue leave, the oldest first, and that is counted and alerted of.
func TestDeadLettersGrowAndLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))
		b := open(t, e, broker.Config{
			Alerts: broker.Alerts{Queue: broker.AlertQueue, Growth: broker.Growth{Count: 5, Window: 10 * time.Minute}},
			Queues: map[string]broker.Policy{"bounded": {DeadMost: 3}},
		})
		names := 0
		some := func(queue string, n int) {
			for range n {
				names++
				m := message(fmt.Sprint("m", names))
				m.Queue = queue
				die(t, b, "%s", m)
			}
		}
		alerts := func() (all []string) {
			for _, d := range receiveOf(t, b, engine.Receive{Queue: broker.AlertQueue, Max: 100}) {
				var al broker.Alert
				if err := json.Unmarshal(d.Payload, &al); err != nil {
					t.Fatal(err)
				}
				all = append(all, fmt.Sprintf("%s %s×%d", al.Reason, al.Queue, al.Count))
				must[[]error](t)(b.Settle(t.Context(), []forebay.Settlement{{Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Ack}}))
			}
			slices.Sort(all)
			return all
		}
		some("q", 20) // before anybody looks
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Watcher().Run(ctx) }()
		time.Sleep(5 * time.Minute)
		want(t, "what was there", fmt.Sprint(alerts()), "[]")
		some("q", 4)
		time.Sleep(time.Minute)
		want(t, "too few", fmt.Sprint(alerts()), "[]")
		some("q", 3)
		some("new", 6)
		time.Sleep(time.Minute)
		want(t, "grown", fmt.Sprint(alerts()), "[growth new×6 growth q×7]")
		some("q", 9)
		time.Sleep(time.Minute)
		want(t, "again within the window", fmt.Sprint(alerts()), "[]")

		some("bounded", 5)
		time.Sleep(time.Minute)
		want(t, "over the bound", strings.Contains(fmt.Sprint(alerts()), "dropped bounded×2"), true)
		want(t, "counted", b.DeadDropped("bounded"), 2)
		left := must[[]forebay.DeadLetter](t)(b.Dead(t.Context(), engine.DeadQuery{Queue: "bounded"}))
		if len(left) != 3 || left[2].Message.ID != fmt.Sprint("m", names-2) {
			t.Errorf("left are %+v", left)
		}
		kept := message("kept")
		kept.Job = &forebay.JobOptions{Keep: forebay.Retention{Dead: forebay.Keep{Age: time.Hour}}}
		die(t, b, "%s", kept)
		time.Sleep(2 * time.Hour)
		want(t, "by its own retention", strings.Contains(fmt.Sprint(alerts()), "dropped q×1"), true)
		stop()
		want(t, "watch", <-ended, nil)
		want(t, "close", b.Close(), nil)
	})
}
