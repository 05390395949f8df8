package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// A Forebay worker and a Node worker on one queue, both killed again and again at
// random. A job has a key while it is worked, with the process that does; who begins
// one and finds the key of a process that lives says that there is an overlap.

const mixedEnv = "REDIS_TEST_WORKER"

// worker is the child of the test: it works until it is killed.
func worker(url string) {
	e, err := redis.Open(context.Background(), redis.Config{URL: url})
	if err != nil {
		panic(err)
	}
	o, err := goredis.ParseURL(url)
	if err != nil {
		panic(err)
	}
	c := goredis.NewClient(o)
	ctx := context.Background()
	for {
		ds, err := e.Receive(context.Background(), engine.Receive{Queue: "q", Max: 4, Wait: time.Second, Lease: 2 * time.Second})
		if err != nil {
			continue
		}
		for _, d := range ds {
			// Those behind the first of a batch have waited: they are worked only while held.
			if errs, err := e.Extend(ctx, []forebay.Receipt{d.Receipt}, 2*time.Second); err != nil || errs[0] != nil {
				continue
			}
			fmt.Println("begin", d.ID)
			if d.Kind == "slow" {
				select {} // until it is killed
			}
			key := "at:" + strings.TrimPrefix(d.ID, "q:")
			if other, err := c.SetArgs(ctx, key, os.Getpid(), goredis.SetArgs{Get: true}).Result(); err == nil && lives(other) {
				fmt.Println("overlap", d.ID)
			}
			<-time.After(time.Duration(rand.IntN(8)) * time.Millisecond)
			c.Del(ctx, key)
			errs, err := e.Settle(context.Background(), []forebay.Settlement{{Receipt: d.Receipt, Verdict: forebay.Ack, Result: []byte(`"go"`)}})
			if err == nil && errs[0] == nil {
				fmt.Println("end", d.ID)
			}
		}
	}
}

// lives tells whether a process is there.
func lives(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && syscall.Kill(n, 0) == nil
}

// goWorker starts a worker in a process of its own.
func goWorker(t testing.TB, url string, said func(line string)) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), mixedEnv+"="+url)
	out := &lines{say: said}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

type lines struct {
	mu   sync.Mutex // guards rest
	rest string
	say  func(string)
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest += string(b)
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(b), nil
		}
		l.rest = rest
		l.say(line)
	}
}

func TestMixedFleetIsKilledAtRandom(t *testing.T) {
	t.Parallel()
	const total, rounds = 400, 6
	s := redistest.Start(t, redistest.Config{})
	url := s.URL(0)
	p := &pair{t: t, s: s, e: mustOpen(t, redis.Config{URL: url}), n: startNode(t, s.Addr(), "6", "bull")}
	all := p.fillBoth(total)
	var mu sync.Mutex
	byGo := make(map[string]int)
	said := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if id, ok := strings.CutPrefix(line, "end "); ok {
			byGo[strings.TrimPrefix(id, "q:")]++
		}
		if id, ok := strings.CutPrefix(line, "overlap "); ok {
			t.Errorf("Go began job %s while another process worked on it", id)
		}
	}
	byNode := make(map[string]int)
	noOverlap := func(n *node) {
		if ids := n.told("overlap"); len(ids) > 0 {
			t.Errorf("Node began jobs %v while another process worked on them", ids)
		}
	}
	work := args{"queue": "q", "guard": true, "opts": args{"concurrency": 4, "lockDuration": 2000, "stalledInterval": 1000, "maxStalledCount": 50}}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range rounds {
		n := startNode(t, s.Addr(), []string{"5", "6"}[rng.IntN(2)], "bull") // first, since it takes long to be there
		killGo := goWorker(t, url, said)
		n.do("work", work)
		<-time.After(time.Duration(200+rng.IntN(400)) * time.Millisecond)
		killGo()
		n.kill()
		noOverlap(n)
		for _, id := range n.told("ended") {
			byNode[id]++
		}
	}
	killGo, n := goWorker(t, url, said), startNode(t, s.Addr(), "6", "bull")
	defer killGo()
	n.do("work", work)
	p.allCompleted(all, 90*time.Second)
	noOverlap(n)
	for _, id := range n.told("ended") {
		byNode[id]++
	}
	mu.Lock()
	defer mu.Unlock()
	if len(byGo) == 0 || len(byNode) == 0 {
		t.Fatalf("Go ended %d jobs, Node %d; want some by each", len(byGo), len(byNode))
	}
	// Go says that a job ended when its settle was accepted, which is once for each job.
	for id, times := range byGo {
		if times != 1 {
			t.Fatalf("job %s was settled %d times", id, times)
		}
	}
	t.Logf("Go ended %d jobs, Node %d", len(byGo), len(byNode))
}

// fillBoth adds jobs, half of them by each side, and gives their ids.
func (p *pair) fillBoth(total int) (all []string) {
	p.t.Helper()
	var ours []forebay.Message
	var theirs []args
	for i := range total / 2 {
		ours = append(ours, jobOf(fmt.Sprint("go", i), nil))
		theirs = append(theirs, args{"name": "x", "data": args{"ms": 3}})
		all = append(all, ours[i].ID)
	}
	p.send(ours...)
	for _, id := range p.n.do("bulk", args{"queue": "q", "jobs": theirs})["ids"].([]any) {
		all = append(all, "q:"+id.(string))
	}
	return all
}

// allCompleted waits until all jobs are completed, and holds the queue empty then.
func (p *pair) allCompleted(ids []string, patience time.Duration) {
	p.t.Helper()
	end := time.Now().Add(patience)
	for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
		s, err := p.e.Stats(p.t.Context(), "q")
		if err != nil {
			p.t.Fatal(err)
		}
		if s[0].Waiting+s[0].Active+s[0].Delayed == 0 {
			break
		}
		if time.Now().After(end) {
			p.t.Fatalf("after %v stats are %+v", patience, s[0])
		}
	}
	for _, id := range ids {
		if j, err := p.e.Job(p.t.Context(), id); err != nil || j.State != forebay.StateCompleted {
			p.t.Fatalf("job %s is %s, %v: %+v", id, j.State, err, j)
		}
	}
}

// client is a plain client of a server.
func client(t testing.TB, s *redistest.Server) *goredis.Client {
	t.Helper()
	o, err := goredis.ParseURL(s.URL(0))
	if err != nil {
		t.Fatal(err)
	}
	c := goredis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
