package redis_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// durable are the settings of a server that keeps what it says.
var durable = redistest.Config{Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}}

// load is one sender and two receivers that go on through errors.
type load struct {
	e  *redis.Engine
	mu sync.Mutex // guards all below

	sent, acked map[string]bool
	maybe       map[string]bool // their settle was cut off: it may have been done
	ackedTwice  []string
	codes       map[forebay.Code]int
}

func (l *load) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.codes[forebay.CodeOf(err)]++
}

func (l *load) send(stop <-chan struct{}) {
	for n := 0; ; {
		select {
		case <-stop:
			return
		default:
		}
		id := fmt.Sprint("m", n)
		res, err := l.e.Send(context.Background(), []forebay.Message{{ID: id, Queue: "q", Payload: []byte("1")}})
		if err == nil {
			err = res[0].Err
		}
		if err != nil {
			l.failed(err) // and again: a duplicate does no harm
			continue
		}
		l.mu.Lock()
		l.sent[id] = true
		l.mu.Unlock()
		n++
	}
}

// receive works until a receive finds nothing after the stop.
func (l *load) receive(stop <-chan struct{}) {
	for {
		ds, err := l.e.Receive(context.Background(), engine.Receive{Queue: "q", Max: 10, Wait: 3 * time.Second, Lease: 2 * time.Second})
		if err != nil {
			l.failed(err)
			continue
		}
		if len(ds) == 0 {
			select {
			case <-stop:
				return
			default:
				continue
			}
		}
		var ss []forebay.Settlement
		for _, d := range ds {
			ss = append(ss, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack})
		}
		errs, err := l.e.Settle(context.Background(), ss)
		if err != nil {
			l.failed(err)
			l.mu.Lock()
			for _, d := range ds {
				l.maybe[d.ID] = true
			}
			l.mu.Unlock()
			continue
		}
		l.mu.Lock()
		for i, d := range ds {
			if errs[i] == nil && l.acked[d.ID] {
				l.ackedTwice = append(l.ackedTwice, d.ID)
			}
			l.acked[d.ID] = l.acked[d.ID] || errs[i] == nil
		}
		l.mu.Unlock()
	}
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// moves wants that work goes on.
func (l *load) moves(t *testing.T, when string) {
	t.Helper()
	from, end := l.count(), time.Now().Add(30*time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); l.count() < from+20; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: nothing is worked any more: %v", when, l.codes)
		}
	}
}

// wakes wants a waiting receive to be woken by another process, as before the outages.
func (l *load) wakes(t *testing.T, s *redistest.Server) {
	t.Helper()
	got := waiting(t, s, l.e, "another")
	if _, err := mustOpen(t, redis.Config{URL: s.URL(0)}).Send(t.Context(), []forebay.Message{{ID: "x", Queue: "another"}}); err != nil {
		t.Fatal(err)
	}
	came(t, got, "a message after the outages")
}

// loaded is an engine with a sender and two receivers; stop ends them, and holds that all
// that was acknowledged as sent has come, and nothing is left.
func loaded(t *testing.T, cfg redis.Config) (l *load, stop func()) {
	t.Helper()
	l = &load{
		e: mustOpen(t, cfg), sent: make(map[string]bool), acked: make(map[string]bool), maybe: make(map[string]bool), codes: make(map[forebay.Code]int),
	}
	end, endSending := make(chan struct{}), make(chan struct{})
	var sender, receivers sync.WaitGroup
	sender.Go(func() { l.send(endSending) })
	receivers.Go(func() { l.receive(end) })
	receivers.Go(func() { l.receive(end) })
	l.moves(t, "at first")
	return l, func() {
		close(endSending)
		sender.Wait()
		close(end)
		receivers.Wait()
		for id := range l.sent {
			if !l.acked[id] && !l.maybe[id] {
				t.Errorf("%s was acknowledged as sent, and never came", id)
			}
		}
		if len(l.ackedTwice) > 0 {
			t.Errorf("%v were acked twice", l.ackedTwice)
		}
		st, err := l.e.Stats(t.Context(), "q")
		if err != nil || st[0].Waiting+st[0].Active+st[0].Delayed > 0 {
			t.Errorf("in the end stats are %+v, %v; want nothing left", st, err)
		}
		for code, n := range l.codes {
			if code != forebay.CodeUnavailable {
				t.Errorf("%d calls failed with code %s, want unavailable only", n, code)
			}
		}
		t.Logf("%d sent, of %d the settle was cut off, %d calls failed", len(l.sent), len(l.maybe), l.codes[forebay.CodeUnavailable])
	}
}

func TestOutages(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, durable)
	l, stop := loaded(t, redis.Config{URL: s.URL(0), Timeout: time.Second})
	outages := map[string]func(){"stopped": s.Stop, "killed": s.Kill, "paused": func() {
		if err := s.Pause(); err != nil {
			t.Error(err)
		}
	}}
	for _, what := range []string{"killed", "paused", "stopped", "paused", "killed"} {
		outages[what]()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if err := l.e.Check(ctx); forebay.CodeOf(err) != forebay.CodeUnavailable {
			t.Errorf("%s: check gave %v, want code unavailable", what, err)
		}
		cancel()
		if what == "paused" {
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
		} else if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.moves(t, "after it was "+what)
		if err := l.e.Check(t.Context()); err != nil {
			t.Errorf("after it was %s: check gave %v", what, err)
		}
	}
	l.wakes(t, s)
	stop()
}

// The network between engine and server: connections are reset with what is on their way,
// and go on without either end being told that nothing arrives any more.
func TestCutOff(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	p := startProxy(t, s.Addr())
	l, stop := loaded(t, redis.Config{URL: p.url(), Timeout: 500 * time.Millisecond})
	for range 20 {
		p.reset()
		l.moves(t, "after a reset")
	}
	for range 2 {
		p.lose(true)
		if err := l.e.Check(t.Context()); forebay.CodeOf(err) != forebay.CodeUnavailable {
			t.Errorf("check while nothing arrives gave %v, want code unavailable", err)
		}
		p.lose(false)
		l.moves(t, "after nothing had arrived")
	}
	l.wakes(t, s)
	stop()
}

// A replica takes the place of the server: those that are connected to the old one are told
// READONLY until they are led to the new one.
func TestFailover(t *testing.T) {
	t.Parallel()
	a := redistest.Start(t, redistest.Config{Settings: map[string]string{"repl-diskless-sync-delay": "0"}})
	b := redistest.Start(t, redistest.Config{})
	host, port, _ := strings.Cut(a.Addr(), ":")
	command(t, b, "replicaof", host, port)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		if info, err := client(t, a).Info(t.Context(), "replication").Result(); err == nil && strings.Contains(info, "state=online") {
			break
		}
	}
	p := startProxy(t, a.Addr())
	l, stop := loaded(t, redis.Config{URL: p.url(), Timeout: time.Second})
	host, port, _ = strings.Cut(b.Addr(), ":")
	command(t, a, "failover", "to", host, port)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		if err := l.e.Check(t.Context()); forebay.CodeOf(err) == forebay.CodeUnavailable && strings.Contains(err.Error(), "READONLY") {
			break
		}
	}
	p.leadTo(b.Addr())
	l.moves(t, "after the failover")
	stop()
}

func TestAReplicaTakesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	e := mustOpen(t, redis.Config{URL: s.URL(0), Timeout: 500 * time.Millisecond})
	command(t, s, "replicaof", "127.0.0.1", "1")
	if err := e.Check(t.Context()); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Errorf("check gave %v, want code unavailable", err)
	}
	m := []forebay.Message{{ID: "a", Queue: "q"}}
	if _, err := e.Send(t.Context(), m); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Errorf("send gave %v, want code unavailable", err)
	}
	command(t, s, "replicaof", "no", "one")
	if res, err := e.Send(t.Context(), m); err != nil || res[0].Err != nil || res[0].Duplicate {
		t.Errorf("send after the promotion gave %+v, %v", res, err)
	}
}

func TestFullMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	e := mustOpen(t, redis.Config{URL: s.URL(0)})
	m := []forebay.Message{{ID: "a", Queue: "q"}}
	command(t, s, "config", "set", "maxmemory", "1")
	if _, err := e.Send(t.Context(), m); forebay.CodeOf(err) != forebay.CodeFull {
		t.Errorf("send gave %v, want code full", err)
	}
	if err := e.Check(t.Context()); forebay.CodeOf(err) != forebay.CodeFull {
		t.Errorf("check gave %v, want code full", err)
	}
	command(t, s, "config", "set", "maxmemory", "0")
	if res, err := e.Send(t.Context(), m); err != nil || res[0].Duplicate {
		t.Errorf("send with memory gave %+v, %v: the refused one left a record", res, err)
	}
}

func command(t *testing.T, s *redistest.Server, args ...any) {
	t.Helper()
	c := client(t, s)
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings map[string]string
		want     string
	}{
		"nothing kept":  {map[string]string{"maxmemory-policy": "allkeys-lru"}, "eviction persistence"},
		"snapshots":     {map[string]string{"save": "3600 1"}, "persistence"},
		"each second":   {map[string]string{"appendonly": "yes"}, "fsync"},
		"all is stored": {durable.Settings, ""},
	} {
		s := redistest.Start(t, redistest.Config{Settings: c.settings})
		found, err := mustOpen(t, redis.Config{URL: s.URL(0)}).Audit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, f := range found {
			codes = append(codes, f.Code)
			if f.Text == "" || f.Hint == "" {
				t.Errorf("%s: finding %+v says too little", name, f)
			}
		}
		if got := strings.Join(codes, " "); got != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for url, code := range map[string]forebay.Code{"http://x": forebay.CodeInvalid, "redis://127.0.0.1:1": forebay.CodeUnavailable} {
		if _, err := redis.Open(t.Context(), redis.Config{URL: url, Timeout: 200 * time.Millisecond}); forebay.CodeOf(err) != code {
			t.Errorf("open of %s gave %v, want code %s", url, err, code)
		}
	}
	if _, err := redis.Open(t.Context(), redis.Config{Prefix: "a:b"}); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Errorf("open with a prefix that has a colon gave %v", err)
	}
}

// A Node worker that dies is noticed by us alone, and its job comes again.
func TestStalledNodeWorker(t *testing.T) {
	versions(t, func(p *pair) {
		id := p.add("x", args{"ms": 60_000}, nil)
		dies := startNode(p.t, p.s.Addr(), "6", "bull")
		dies.do("work", args{"queue": "q", "opts": args{"lockDuration": 1000, "stalledInterval": 60_000}})
		dies.event("it began", func(e map[string]any) bool { return e["started"] == id })
		dies.kill()
		p.want(id, args{"state": "active"})
		c := client(p.t, p.s)
		for range 2 { // the first scan remembers what is active, the second finds it without a lock
			<-time.After(1100 * time.Millisecond)
			if err := c.Del(p.t.Context(), "bull:q:stalled-check").Err(); err != nil {
				p.t.Fatal(err)
			}
			if err := p.e.Sweep(p.t.Context(), "q"); err != nil {
				p.t.Fatal(err)
			}
		}
		d := p.one(id)
		if d.Attempt != 1 {
			p.t.Fatalf("a crash was charged as an attempt: %+v", d)
		}
		p.settle(d, forebay.Ack, "")
		p.want(id, args{"state": "completed"})
	})
}

// A lease of ours that ends is noticed, and so is one whose job a Node client took away.
func TestNodeObliterates(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	p := &pair{t: t, s: s, e: mustOpen(t, redis.Config{URL: s.URL(0)}), n: startNode(t, s.Addr(), "6", "bull")}
	p.send(jobOf("a", nil), jobOf("b", nil))
	ds := p.take(1)
	p.n.do("obliterate", args{"queue": "q"})
	errs, err := p.e.Settle(t.Context(), []forebay.Settlement{{Receipt: ds[0].Receipt, Verdict: forebay.Ack}})
	if err != nil || forebay.CodeOf(errs[0]) != forebay.CodeLeaseLost {
		t.Fatalf("settle of a job that is gone gave %v, %v", errs, err)
	}
	if st, err := p.e.Stats(t.Context(), "q"); err != nil || st[0].Waiting+st[0].Active+st[0].Delayed != 0 {
		t.Fatalf("stats of the obliterated queue: %+v, %v", st, err)
	}
	p.send(jobOf("c", nil))
	if got := p.take(10); !slices.EqualFunc(got, []string{"c"}, func(d forebay.Delivery, id string) bool { return d.ID == id }) {
		t.Fatalf("after it %+v came", got)
	}
}
