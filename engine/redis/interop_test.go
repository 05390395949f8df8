package redis_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// pair is an engine and a Node program on the same queues.
type pair struct {
	t testing.TB
	s *redistest.Server
	e *redis.Engine
	n *node
}

func versions(t *testing.T, f func(p *pair)) {
	for _, v := range []string{"5", "6"} {
		t.Run("bullmq "+v, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, redistest.Config{})
			f(&pair{t: t, s: s, e: mustOpen(t, redis.Config{URL: s.URL(0)}), n: startNode(t, s.Addr(), v, "bull")})
		})
	}
}

func mustOpen(t testing.TB, cfg redis.Config) *redis.Engine {
	t.Helper()
	e, err := redis.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

type args = map[string]any

func (p *pair) add(name string, data any, opts args) string {
	p.t.Helper()
	return p.n.do("add", args{"queue": "q", "name": name, "data": data, "opts": opts})["id"].(string)
}

func (p *pair) take(n int) []forebay.Delivery {
	p.t.Helper()
	ds, err := p.e.Receive(p.t.Context(), engine.Receive{Queue: "q", Max: n, Wait: 20 * time.Second})
	if err != nil {
		p.t.Fatal(err)
	}
	return ds
}

// one takes the single job with this id that must come next.
func (p *pair) one(id string) forebay.Delivery {
	p.t.Helper()
	ds := p.take(1)
	if len(ds) != 1 || ds[0].ID != "q:"+id && ds[0].ID != id {
		p.t.Fatalf("%+v came, want job %s", ds, id)
	}
	return ds[0]
}

func (p *pair) settle(d forebay.Delivery, v forebay.Verdict, result string) {
	p.t.Helper()
	s := forebay.Settlement{Receipt: d.Receipt, Verdict: v, Result: []byte(result)}
	if v != forebay.Ack {
		s.Cause = forebay.Cause{Code: "handler", Message: "failed on purpose"}
	}
	errs, err := p.e.Settle(p.t.Context(), []forebay.Settlement{s})
	if err != nil || errs[0] != nil {
		p.t.Fatalf("settle: %v, %v", errs, err)
	}
}

func (p *pair) send(msgs ...forebay.Message) {
	p.t.Helper()
	res, err := p.e.Send(p.t.Context(), msgs)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range res {
		if r.Err != nil || r.Duplicate {
			p.t.Fatalf("send: %+v", r)
		}
	}
}

func jobOf(id string, change func(m *forebay.Message)) forebay.Message {
	m := forebay.Message{ID: id, Queue: "q", Kind: "work", Payload: []byte(`{"n":1}`), Job: &forebay.JobOptions{}}
	if change != nil {
		change(&m)
	}
	return m
}

func (p *pair) nodeJob(id string) args {
	p.t.Helper()
	return p.n.do("job", args{"queue": "q", "id": id})
}

func (p *pair) want(id string, fields args) {
	p.t.Helper()
	got := p.nodeJob(id)
	for name, want := range fields {
		a, b := encode(p.t, got[name]), encode(p.t, want)
		if a != b {
			p.t.Fatalf("BullMQ tells of job %s %s %s, want %s (all: %v)", id, name, a, b, got)
		}
	}
}

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What Node adds is worked here, and Node sees how it went.
func TestNodeAddsForebayWorks(t *testing.T) {
	versions(t, func(p *pair) {
		p.n.do("events", args{"queue": "q"})
		id := p.add("mail", args{"to": "a@b"}, nil)
		wait := p.n.begin("finished", args{"queue": "q", "id": id, "ms": 30000})
		d := p.one(id)
		if d.Kind != "mail" || string(d.Payload) != `{"to":"a@b"}` || d.Job == nil {
			p.t.Fatalf("job came as %+v", d)
		}
		p.want(id, args{"state": "active", "attemptsStarted": 1})
		progress, err := p.e.Progress(p.t.Context(), []forebay.ProgressUpdate{{Receipt: d.Receipt, Progress: &forebay.Progress{Percent: 40}, Log: []forebay.LogLine{{Text: "line"}}}})
		if err != nil || progress[0] != nil {
			p.t.Fatalf("progress: %v, %v", progress, err)
		}
		p.settle(d, forebay.Ack, `{"sent":true}`)
		if got := p.n.answer("finished", wait); encode(p.t, got["value"]) != `{"sent":true}` {
			p.t.Fatalf("job.waitUntilFinished gave %v", got)
		}
		p.want(id, args{"state": "completed", "returnvalue": args{"sent": true}, "attemptsMade": 1, "progress": 40, "logs": []string{"line"}, "processedBy": "forebay"})
		p.n.saw("active", id)
		p.n.saw("progress", id)
		if e := p.n.saw("completed", id); encode(p.t, e["returnvalue"]) != `{"sent":true}` {
			p.t.Fatalf("QueueEvents says %v", e)
		}
		if j, err := p.e.Job(p.t.Context(), "q:"+id); err != nil || j.State != forebay.StateCompleted || string(j.Result) != `{"sent":true}` {
			p.t.Fatalf("the ledger tells %+v, %v", j, err)
		}
	})
}

// The order and the times of Node's options hold.
func TestNodeOptions(t *testing.T) {
	versions(t, func(p *pair) {
		p.n.do("pause", args{"queue": "q"})
		b := p.add("b", args{}, nil)
		a := p.add("a", args{}, args{"lifo": true})
		low := p.add("low", args{}, args{"priority": 100})
		high := p.add("high", args{}, args{"priority": 7})
		custom := p.add("c", args{}, args{"jobId": "custom"})
		begin := time.Now()
		later := p.add("later", args{}, args{"delay": 1500})
		if ds, err := p.e.Receive(p.t.Context(), engine.Receive{Queue: "q", Max: 1}); err != nil || len(ds) > 0 {
			p.t.Fatalf("a queue that Node paused gave %v, %v", ds, err)
		}
		p.n.do("resume", args{"queue": "q"})
		for _, id := range []string{a, b, custom, high, low} {
			p.settle(p.one(id), forebay.Ack, "")
		}
		p.settle(p.one(later), forebay.Ack, "")
		if since := time.Since(begin); since < 1400*time.Millisecond {
			p.t.Fatalf("a job delayed by 1.5 s came after %v", since)
		}
		if again := p.add("c", args{}, args{"jobId": "custom"}); again != "custom" {
			p.t.Fatalf("a job of the same id got id %s", again)
		}
		if ds, err := p.e.Receive(p.t.Context(), engine.Receive{Queue: "q", Max: 1}); err != nil || len(ds) > 0 {
			p.t.Fatalf("a duplicate came: %v, %v", ds, err)
		}
	})
}

// Retries count for both, and the end is a failed job there and a dead letter here.
func TestNodeAttempts(t *testing.T) {
	versions(t, func(p *pair) {
		p.n.do("events", args{"queue": "q"})
		id := p.add("x", args{}, args{"attempts": 3, "backoff": args{"type": "fixed", "delay": 10}})
		d := p.one(id)
		if d.Limits.Attempts != 3 || d.Job.Backoff.Base != 10*time.Millisecond {
			p.t.Fatalf("attempts and backoff came as %+v, %+v", d.Limits, d.Job.Backoff)
		}
		p.settle(d, forebay.Retry, "")
		p.want(id, args{"state": "waiting", "attemptsMade": 1, "failedReason": "failed on purpose"})
		d = p.one(id)
		if d.Attempt != 2 || len(d.Failures) != 1 {
			p.t.Fatalf("the second attempt came as %+v", d)
		}
		p.settle(d, forebay.Dead, "")
		p.want(id, args{"state": "failed", "attemptsMade": 2, "failedReason": "failed on purpose"})
		p.n.saw("failed", id)
		letters, err := p.e.Dead(p.t.Context(), engine.DeadQuery{Queue: "q"})
		if err != nil || len(letters) != 1 || letters[0].Message.ID != "q:"+id {
			p.t.Fatalf("dead letters %+v, %v", letters, err)
		}
		p.n.do("retry", args{"queue": "q", "id": id}) // as bull-board does
		p.settle(p.one(id), forebay.Ack, "")
		p.want(id, args{"state": "completed"})
		if letters, err := p.e.Dead(p.t.Context(), engine.DeadQuery{Queue: "q"}); err != nil || len(letters) != 0 {
			p.t.Fatalf("dead letters after a retry by Node: %+v, %v", letters, err)
		}
	})
}

func TestNodeDeduplication(t *testing.T) {
	versions(t, func(p *pair) {
		p.n.do("events", args{"queue": "q"})
		simple := args{"deduplication": args{"id": "k"}}
		first := p.add("x", args{"n": 1}, simple)
		if second := p.add("x", args{"n": 2}, simple); second != first {
			p.t.Fatalf("a second job of the key got id %s, want %s", second, first)
		}
		p.settle(p.one(first), forebay.Ack, "")
		third := p.add("x", args{"n": 3}, simple)
		if third == first {
			p.t.Fatal("the key outlived its job")
		}
		p.settle(p.one(third), forebay.Ack, "")
		// What we hold by a key Node does not add again, and the reverse.
		p.send(jobOf("ours", func(m *forebay.Message) { m.DedupKey, m.Job.Dedup = "ours", forebay.DedupUntilFinished }))
		if id := p.add("x", args{}, args{"deduplication": args{"id": "ours"}}); id != "ours" {
			p.t.Fatalf("Node added %s beside our job of that key", id)
		}
		theirs := p.add("x", args{}, args{"deduplication": args{"id": "theirs"}})
		res, err := p.e.Send(p.t.Context(), []forebay.Message{jobOf("z", func(m *forebay.Message) { m.DedupKey, m.Job.Dedup = "theirs", forebay.DedupUntilFinished })})
		if err != nil || !res[0].Duplicate || res[0].ID != theirs {
			p.t.Fatalf("beside Node's job %s of the key: %+v, %v", theirs, res, err)
		}
		p.settle(p.one("ours"), forebay.Ack, "")
		if id := p.add("x", args{}, args{"deduplication": args{"id": "ours"}}); id == "ours" {
			p.t.Fatal("our key outlived its job")
		}
	})
}

// While one is active, BullMQ parks the last of its key; whoever ends the first lets it come.
func TestNodeKeepsLast(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	p := &pair{t: t, s: s, e: mustOpen(t, redis.Config{URL: s.URL(0)}), n: startNode(t, s.Addr(), "6", "bull")}
	last := args{"deduplication": args{"id": "k", "keepLastIfActive": true}}
	first := p.add("x", args{"n": 1}, last)
	d := p.one(first)
	p.add("x", args{"n": 2}, last)
	p.add("x", args{"n": 3}, last)
	p.settle(d, forebay.Ack, "")
	ds := p.take(10)
	if len(ds) != 1 || string(ds[0].Payload) != `{"n":3}` {
		t.Fatalf("after the first %+v came, want the last", ds)
	}
}

// What is added here a Node worker works, and the ledger tells how it went.
func TestForebayAddsNodeWorks(t *testing.T) {
	versions(t, func(p *pair) {
		begin := time.Now()
		p.send(
			jobOf("plain", nil), jobOf("fails", func(m *forebay.Message) {
				m.Payload, m.Limits.Attempts = []byte(`{"fail":9}`), 2
				m.Job.Backoff = forebay.Backoff{Kind: forebay.BackoffFixed, Base: 10 * time.Millisecond}
			}),
			jobOf("late", func(m *forebay.Message) { m.NotBefore = begin.Add(1200 * time.Millisecond) }),
			jobOf("urgent", func(m *forebay.Message) { m.Priority = forebay.At(0) }),
			jobOf("binary", func(m *forebay.Message) { m.Payload = []byte{0, 255} }),
			forebay.Message{ID: "message", Queue: "q", Kind: "untracked", Payload: []byte("1")},
			jobOf("a:b%c", nil), jobOf("123", nil), jobOf("active", nil),
		)
		p.n.do("work", args{"queue": "q", "opts": args{"concurrency": 2}})
		done := func(id string, state forebay.State) forebay.Job {
			p.t.Helper()
			for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
				j, err := p.e.Job(p.t.Context(), id)
				if err != nil {
					p.t.Fatal(err)
				}
				if j.State == state || time.Since(begin) > 30*time.Second {
					if j.State != state {
						p.t.Fatalf("%s is %s, want %s: %+v", id, j.State, state, j)
					}
					return j
				}
			}
		}
		j := done("plain", forebay.StateCompleted)
		if string(j.Result) != `{"worked":"plain"}` || j.Attempts != 0 || j.Progress.Percent != 50 {
			p.t.Fatalf("the ledger tells of a job that Node worked %+v, result %s", j, j.Result)
		}
		if j := done("late", forebay.StateCompleted); j.StartedAt.Before(begin.Add(1200 * time.Millisecond)) {
			p.t.Fatalf("the delayed job began %v after the start", j.StartedAt.Sub(begin))
		}
		if j := done("fails", forebay.StateDead); j.Attempts != 2 || !strings.Contains(j.Cause.Message, "on purpose") {
			p.t.Fatalf("the ledger tells of a job that failed at Node %+v", j)
		}
		for _, id := range []string{"urgent", "binary", "a:b%c", "123", "active"} {
			done(id, forebay.StateCompleted)
		}
		s, err := p.e.Stats(p.t.Context(), "q")
		if err != nil || s[0].Waiting+s[0].Active+s[0].Delayed != 0 || s[0].Dead != 1 {
			p.t.Fatalf("stats %+v, %v", s, err)
		}
		letters, err := p.e.Dead(p.t.Context(), engine.DeadQuery{})
		if err != nil || len(letters) != 1 || letters[0].Message.ID != "fails" {
			p.t.Fatalf("dead letters %+v, %v", letters, err)
		}
		if got := slices.Sorted(maps.Keys(p.redisMessages())); len(got) > 0 {
			p.t.Fatalf("of a message that nobody tracks are left %v", got)
		}
	})
}

// redisMessages finds what is stored of the message that no ledger keeps.
func (p *pair) redisMessages() args {
	if j := p.nodeJob("message"); j["state"] != "unknown" {
		return j
	}
	return nil
}

// Children of a flow that are worked here let their parent go on, as their policy says.
func TestNodeFlows(t *testing.T) {
	versions(t, func(p *pair) {
		child := func(name string, opts args) args {
			return args{"name": name, "queueName": "q", "data": args{}, "opts": opts}
		}
		flow := func(children ...args) (parent string, ids []string) {
			r := p.n.do("flow", args{"tree": args{"name": "parent", "queueName": "parents", "children": children}})
			for _, c := range r["children"].([]any) {
				ids = append(ids, c.(string))
			}
			return r["id"].(string), ids
		}
		parent := func() *forebay.Delivery {
			ds, err := p.e.Receive(p.t.Context(), engine.Receive{Queue: "parents", Max: 1})
			if err != nil {
				p.t.Fatal(err)
			}
			if len(ds) == 0 {
				return nil
			}
			return &ds[0]
		}
		id, ids := flow(child("one", nil), child("two", nil))
		for range ids {
			if d := parent(); d != nil {
				p.t.Fatalf("the parent came before its children: %+v", d)
			}
			p.settle(p.take(1)[0], forebay.Ack, `"ok"`)
		}
		d := parent()
		if d == nil || d.ID != "parents:"+id {
			p.t.Fatalf("after its children the parent is %+v", d)
		}
		got := p.n.do("children", args{"queue": "parents", "id": id})
		if encode(p.t, got["values"]) != encode(p.t, args{"bull:q:" + ids[0]: "ok", "bull:q:" + ids[1]: "ok"}) {
			p.t.Fatalf("the children's results are %v", got)
		}
		p.settle(*d, forebay.Ack, "")
		for policy, comes := range map[string]bool{
			"ignoreDependencyOnFailure": true, "removeDependencyOnFailure": true, "continueParentOnFailure": true, "failParentOnFailure": false,
		} {
			id, _ := flow(child("fails", args{policy: true}))
			p.settle(p.take(1)[0], forebay.Dead, "")
			d := parent()
			if (d != nil) != comes {
				p.t.Fatalf("%s: after its child has failed the parent is %+v", policy, d)
			}
			if d != nil {
				p.settle(*d, forebay.Ack, "")
				continue
			}
			j := p.n.do("job", args{"queue": "parents", "id": id})
			if j["state"] != "failed" || !strings.Contains(fmt.Sprint(j["failedReason"]), "failed") {
				p.t.Fatalf("%s: the parent is %v", policy, j)
			}
		}
		p.retriedChild()
	})
}

// The most active of a queue holds for both together, whoever sets it.
func TestNodeConcurrency(t *testing.T) {
	versions(t, func(p *pair) {
		p.n.do("global", args{"queue": "q", "concurrency": 2})
		for range 4 {
			p.add("x", args{}, nil)
		}
		ds := p.take(10)
		if len(ds) != 2 {
			p.t.Fatalf("%d came, the queue allows 2", len(ds))
		}
		l, err := p.e.QueueLimits(p.t.Context(), "q")
		if err != nil || l.Active != 2 {
			p.t.Fatalf("limits %+v, %v", l, err)
		}
		p.n.do("work", args{"queue": "q", "opts": args{"concurrency": 5}})
		if err := p.e.SetLimits(p.t.Context(), "q", engine.QueueLimits{}); err != nil {
			p.t.Fatal(err)
		}
		p.n.event("it ended two", func(args) bool { return len(p.n.told("ended")) == 2 })
		for _, d := range ds {
			p.settle(d, forebay.Ack, "")
		}
	})
}

// Whoever picks up a run of a job scheduler makes the next, else the schedule would end.
func TestNodeSchedulers(t *testing.T) {
	versions(t, func(p *pair) {
		for name, repeat := range map[string]args{
			"every": {"every": 400, "limit": 3}, "cron": {"pattern": "* * * * * *", "limit": 3},
		} {
			p.n.do("scheduler", args{"queue": "q", "id": name, "repeat": repeat, "template": args{"name": name, "data": args{"of": name}}})
			seen := make(map[string]bool)
			for range 3 {
				ds := p.take(1)
				if len(ds) != 1 || ds[0].Kind != name || string(ds[0].Payload) != `{"of":"`+name+`"}` || seen[ds[0].ID] {
					p.t.Fatalf("of scheduler %s came %+v, after %v", name, ds, seen)
				}
				seen[ds[0].ID] = true
				p.settle(ds[0], forebay.Ack, "")
			}
			if ds, err := p.e.Receive(p.t.Context(), engine.Receive{Queue: "q", Max: 1, Wait: 2 * time.Second}); err != nil || len(ds) > 0 {
				p.t.Fatalf("beyond the limit of scheduler %s came %+v, %v", name, ds, err)
			}
		}
		// Half of the runs by each side: the schedule goes on.
		p.n.do("scheduler", args{"queue": "q", "id": "both", "repeat": args{"every": 300}, "template": args{"name": "both"}})
		p.settle(p.take(1)[0], forebay.Ack, "")
		p.n.do("work", args{"queue": "q", "opts": args{}})
		p.n.event("it ended two", func(args) bool { return len(p.n.told("ended")) >= 2 })
	})
}
