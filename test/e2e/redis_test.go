//go:build e2e && linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/redistest"
)

// bull is a Node program with BullMQ (engine/redis/testdata/node/bull.mjs).
type bull struct {
	t   *testing.T
	ask func(cmd string, args options) map[string]any
}

func startBull(t *testing.T, s *redistest.Server, version string) *bull {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.Addr())
	cmd := exec.Command("node", "bull.mjs", port, version, "bull")
	cmd.Dir = filepath.Join("..", "..", "engine", "redis", "testdata", "node")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	answers := make(chan map[string]any, 1)
	go func() { // ends with the process
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var m map[string]any
			if json.Unmarshal(lines.Bytes(), &m) == nil && m["answer"] != nil {
				answers <- m
			}
		}
	}()
	return &bull{t, func(cmd string, args options) map[string]any {
		t.Helper()
		line := options{"cmd": cmd, "n": 1}
		for k, v := range args {
			line[k] = v
		}
		if err := json.NewEncoder(in).Encode(line); err != nil {
			t.Fatal(err)
		}
		select {
		case m := <-answers:
			if m["error"] != nil {
				t.Fatalf("BullMQ: %s: %v", cmd, m["error"])
			}
			return m
		case <-time.After(time.Minute):
			t.Fatalf("BullMQ: %s gave no answer in a minute", cmd)
		}
		return nil
	}}
}

// pushed is a target of pushes that counts them, by job and by server.
type pushed struct {
	mu   sync.Mutex // guards all below
	jobs map[string]int
	by   map[string]int
}

func (p *pushed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ JobID, ProgressURL string }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.jobs[body.JobID]++
	server, _, _ := strings.Cut(strings.TrimPrefix(body.ProgressURL, "http://"), "/")
	p.by[server]++
	p.mu.Unlock()
	fmt.Fprintf(w, `{"of":%q}`, body.JobID)
}

func (p *pushed) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.jobs)
}

func (s *server) listed(filter string) (n int) {
	s.t.Helper()
	for after := ""; ; {
		var page struct {
			Items []job
			Next  string
		}
		s.must(http.StatusOK, http.MethodGet, "/api/jobs?limit=1000&q="+strings.ReplaceAll(filter, " ", "%20")+"&after="+after, nil, &page)
		if n, after = n+len(page.Items), page.Next; after == "" {
			return n
		}
	}
}

// Two servers share one Redis with BullMQ 5 and 6: each works what the others add. Then
// Redis is killed while jobs are added: all that was acknowledged ends, and readiness
// tells what is the matter.
func TestJobsOnRedis(t *testing.T) {
	t.Parallel()
	const each = 100
	store := redistest.Start(t, redistest.Config{Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}})
	target := &pushed{jobs: map[string]int{}, by: map[string]int{}}
	web := httptest.NewServer(target)
	defer web.Close()
	start := func() *server {
		s := newServer(t, "REDIS_URL="+store.URL(0))
		s.args = []string{"--roles", "api,worker", "--set", "handlers.nothing.queue=work", "--set", "handlers.nothing.url=" + web.URL, "--set", "webhooks.private=true"}
		s.start()
		return s
	}
	a, b := start(), start()
	var nodes []*bull
	for _, version := range []string{"5", "6"} {
		n := startBull(t, store, version)
		nodes = append(nodes, n)
		jobs := make([]options, each)
		for i := range jobs {
			jobs[i] = options{"name": "nothing", "data": options{"n": i}}
		}
		n.ask("bulk", options{"queue": "work", "jobs": jobs})
	}
	for range each / 10 {
		b.add("work", "nothing", options{"n": 1}, nil)
	}
	all := 2*each + each/10
	if !eventually(t, 30*time.Second, func() bool { return a.listed("queue:work state:completed") == all }) {
		t.Fatalf("%d of %d jobs of three kinds are completed", a.listed("queue:work state:completed"), all)
	}
	if target.count() != all || len(target.by) != 2 {
		t.Errorf("%d different jobs of %d were worked, by %v; want both servers", target.count(), all, target.by)
	}

	// The reverse: Node works what the API adds.
	var ids []string
	for i := range 20 {
		ids = append(ids, a.add("node", "work", options{"n": i}, nil))
	}
	for _, n := range nodes {
		n.ask("work", options{"queue": "node", "opts": options{"concurrency": 2}})
	}
	for _, id := range ids {
		if j := b.await(id, 30*time.Second, "completed"); !strings.Contains(string(j.Result), "worked") {
			t.Errorf("job %s has the result %s", id, j.Result)
		}
	}
	out := doctorOf(t, a, []string{"REDIS_URL=" + store.URL(0)})
	if !strings.Contains(out, "queue node is worked by 2 BullMQ workers") || strings.Contains(out, "power loss may lose") {
		t.Errorf("the doctor says\n%s", out)
	}

	killRedis(t, store, a, b)
	for _, s := range []*server{a, b} {
		if code := s.terminate(30 * time.Second); code != 0 {
			t.Errorf("a server ended with %d", code)
		}
	}
}

// killRedis kills the store while jobs are added to one server; both work them.
func killRedis(t *testing.T, store *redistest.Server, a, b *server) {
	t.Helper()
	crowd := &jobCrowd{users: 4, every: 5 * time.Millisecond}
	crowd.during(a, 500*time.Millisecond, func() {
		store.Kill()
		if !eventually(t, 20*time.Second, func() bool { return !a.ready() }) {
			t.Error("readiness does not tell that Redis is away")
		}
		if err := store.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if !eventually(t, 30*time.Second, a.ready) {
			t.Error("the server does not come back after Redis")
		}
		t.Logf("ready %v after Redis", time.Since(begun).Round(time.Millisecond))
		wait(t, 500*time.Millisecond)
	})
	if len(crowd.acked) < 50 {
		t.Errorf("only %d jobs were acknowledged", len(crowd.acked))
	}
	for _, id := range crowd.acked {
		b.await(id, 60*time.Second, "completed")
	}
}
