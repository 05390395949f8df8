package redis_test

import (
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

func (p *pair) none(what string) {
	p.t.Helper()
	if id := p.nodeTakes(); id != "" {
		p.t.Fatalf("%s: Node took %s", what, id)
	}
	if ds, err := p.e.Receive(p.t.Context(), engine.Receive{Queue: "q", Max: 10}); err != nil || len(ds) > 0 {
		p.t.Fatalf("%s: %v, %v came here", what, ds, err)
	}
}

func (p *pair) nodeTakes() string { return p.n.do("take", args{"queue": "q"})["id"].(string) }

func TestSharedWithNode(t *testing.T) {
	versions(t, func(p *pair) {
		p.retention()
		p.sharedLimits()
	})
}

// Pause, the most active and a global rate hold for both together, whoever sets them.
func (p *pair) sharedLimits() {
	p.t.Helper()
	limits := func(l engine.QueueLimits) {
		p.t.Helper()
		if err := p.e.SetLimits(p.t.Context(), "q", l); err != nil {
			p.t.Fatal(err)
		}
	}
	for range 8 {
		p.add("x", args{}, nil)
	}
	limits(engine.QueueLimits{Paused: true})
	p.none("paused here")
	limits(engine.QueueLimits{})
	p.n.do("pause", args{"queue": "q"})
	p.none("paused by Node")
	p.n.do("resume", args{"queue": "q"})

	limits(engine.QueueLimits{Active: 2})
	theirs, ours := p.nodeTakes(), p.take(1)
	if theirs == "" || len(ours) != 1 {
		p.t.Fatalf("of the first two Node took %q, here came %v", theirs, ours)
	}
	p.none("two are active")
	p.n.do("end", args{"id": theirs, "how": "complete", "value": 1})
	p.settle(ours[0], forebay.Ack, "")
	limits(engine.QueueLimits{})

	p.n.do("rate", args{"queue": "q", "max": 2, "duration": 60_000})
	theirs, ours = p.nodeTakes(), p.take(1)
	if theirs == "" || len(ours) != 1 {
		p.t.Fatalf("of the rate of two Node took %q, here came %v", theirs, ours)
	}
	p.none("two have begun")
}

// retriedChild lets a child fail where nothing is said about that: its parent waits, and goes on after its retry.
func (p *pair) retriedChild() {
	p.t.Helper()
	r := p.n.do("flow", args{"tree": args{"name": "parent", "queueName": "parents", "children": []args{{"name": "child", "queueName": "q"}}}})
	parent, child := r["id"].(string), r["children"].([]any)[0].(string)
	p.settle(p.one(child), forebay.Dead, "")
	if j := p.n.do("job", args{"queue": "parents", "id": parent}); j["state"] != "waiting-children" {
		p.t.Fatalf("after its child has failed the parent is %v", j)
	}
	letters, err := p.e.Dead(p.t.Context(), engine.DeadQuery{Queue: "q"})
	if err != nil || len(letters) == 0 || letters[0].Message.ID != "q:"+child {
		p.t.Fatal(letters, err)
	}
	if errs, err := p.e.Replay(p.t.Context(), []int64{letters[0].Seq}); err != nil || errs[0] != nil {
		p.t.Fatal(errs, err)
	}
	p.settle(p.one(child), forebay.Ack, `"ok"`)
	ds, err := p.e.Receive(p.t.Context(), engine.Receive{Queue: "parents", Max: 1})
	if err != nil || len(ds) != 1 {
		p.t.Fatalf("after the retry of its child the parent is %v, %v", ds, err)
	}
}

// A worker here that is killed is noticed by Node workers alone.
func TestStalledForebayWorker(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	p := &pair{t: t, s: s, n: startNode(t, s.Addr(), "6", "bull")}
	began := make(chan struct{}, 1)
	kill := goWorker(t, s.URL(0), func(line string) {
		if line == "begin q:1" {
			began <- struct{}{}
		}
	})
	p.add("slow", args{}, nil)
	<-began
	kill()
	p.n.do("work", args{"queue": "q", "opts": args{"stalledInterval": 500}})
	p.n.event("it ended what the killed one had", func(e map[string]any) bool { return e["ended"] == "1" })
}

// retention does what Node producers say about keeping finished jobs and logs.
func (p *pair) retention() {
	p.t.Helper()
	counts := func() string {
		p.t.Helper()
		c := p.n.do("counts", args{"queue": "q"})
		return encode(p.t, []any{c["completed"], c["failed"]})
	}
	work := func(v forebay.Verdict, opts args) string {
		p.t.Helper()
		id := p.add("x", args{}, opts)
		p.settle(p.one(id), v, "")
		return id
	}
	for range 5 {
		work(forebay.Ack, args{"removeOnComplete": args{"count": 2}})
		work(forebay.Dead, args{"removeOnFail": 3})
	}
	if got := counts(); got != "[2,3]" {
		p.t.Fatalf("completed and failed are %s, want [2,3]", got)
	}
	letters, err := p.e.Dead(p.t.Context(), engine.DeadQuery{Queue: "q"})
	if err != nil || len(letters) != 3 {
		p.t.Fatalf("dead letters are %v, %v; want 3", letters, err)
	}
	work(forebay.Ack, args{"removeOnComplete": true})
	work(forebay.Dead, args{"removeOnFail": true})
	if got := counts(); got != "[2,3]" {
		p.t.Fatalf("with two to be removed completed and failed are %s, want [2,3]", got)
	}
	work(forebay.Ack, args{"removeOnComplete": args{"age": 1}})
	if got := counts(); got != "[3,3]" {
		p.t.Fatalf("with one for a second completed and failed are %s, want [3,3]", got)
	}
	for end := time.Now().Add(20 * time.Second); counts() != "[2,3]"; {
		if time.Now().After(end) {
			p.t.Fatalf("what was to be kept for a second is still there: %s", counts())
		}
	}
	d := p.one(p.add("x", args{}, args{"keepLogs": 2}))
	for _, line := range []string{"a", "b", "c"} {
		if errs, err := p.e.Progress(p.t.Context(), []forebay.ProgressUpdate{{Receipt: d.Receipt, Log: []forebay.LogLine{{Text: line}}}}); err != nil || errs[0] != nil {
			p.t.Fatal(errs, err)
		}
	}
	p.want(d.ID[2:], args{"logs": []string{"b", "c"}})
	p.settle(d, forebay.Ack, "")
}

// BullMQ's getWorkers lists who works here, also after the server has ended its connections.
func TestNodeListsWorkers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	p := &pair{t: t, s: s, e: mustOpen(t, redis.Config{URL: s.URL(0), Listed: 2, Name: "my server"}), n: startNode(t, s.Addr(), "6", "bull")}
	names := func(queue string) string {
		var all []any
		for _, w := range p.n.do("workers", args{"queue": queue})["all"].([]any) {
			all = append(all, w.(args)["rawname"])
		}
		return encode(t, all)
	}
	wants := func(queue, want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); names(queue) != want; {
			if time.Now().After(end) {
				t.Fatalf("getWorkers of %s lists %s, want %s", queue, names(queue), want)
			}
		}
	}
	for _, queue := range []string{"q", "r", "s"} {
		if _, err := p.e.Receive(t.Context(), engine.Receive{Queue: queue, Max: 1}); err != nil {
			t.Fatal(err)
		}
	}
	wants("q", `["bull:cQ==:w:forebay-my-server"]`)
	wants("r", `["bull:cg==:w:forebay-my-server"]`)
	wants("s", "null")
	if all, err := p.e.NodeWorkers(t.Context()); err != nil || len(all) > 0 {
		t.Fatalf("its own are counted as Node workers: %v, %v", all, err)
	}
	command(t, s, "client", "kill", "type", "normal", "skipme", "no")
	wants("q", "null")
	p.e.ListAgain()
	wants("q", `["bull:cQ==:w:forebay-my-server"]`)
}
