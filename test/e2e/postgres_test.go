//go:build e2e

package e2e

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// Two servers share one PostgreSQL. One is killed while jobs are added to the other and both
// work them: what was acknowledged ends, once each, and what the killed one held is taken
// over when its leases end.
func TestJobsOnPostgres(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Config{}).Database(t)
	target := &pushed{jobs: map[string]int{}, by: map[string]int{}}
	web := httptest.NewServer(target)
	defer web.Close()
	start := func() *server {
		s := newServer(t, "FOREBAY_POSTGRES_URL="+url)
		s.args = []string{"--roles", "api,worker", "--set", "handlers.nothing.queue=work", "--set", "handlers.nothing.url=" + web.URL,
			"--set", "webhooks.private=true", "--set", "queues.work.lease=3s", "--set", "queues.work.concurrency=4"}
		s.start()
		return s
	}
	a, b := start(), start()
	crowd := &jobCrowd{users: 4, every: 5 * time.Millisecond}
	crowd.during(b, 500*time.Millisecond, func() {
		if !eventually(t, 30*time.Second, func() bool { return target.servers() == 2 }) {
			t.Error("one server alone works")
		}
		a.kill()
		wait(t, 500*time.Millisecond)
	})
	for _, id := range crowd.acked {
		b.await(id, 60*time.Second, "completed")
	}
	if n := target.count(); n < len(crowd.acked) {
		t.Errorf("%d jobs of %d were worked", n, len(crowd.acked))
	}
	t.Logf("%d jobs; the killed server had worked %d of them that it had not settled", target.count(), target.twice())
	twice := connect(t, url).count(`SELECT count(*) FROM (SELECT FROM forebay.event WHERE type = 'completed' GROUP BY job HAVING count(*) > 1) x`)
	if twice > 0 {
		t.Errorf("%d jobs are completed twice", twice)
	}
	if code := b.terminate(30 * time.Second); code != 0 {
		t.Errorf("the other server ended with %d", code)
	}
	a.start()
	a.await(crowd.acked[0], 30*time.Second, "completed") // the one that was killed tells the same
}

// servers is how many servers have pushed.
func (p *pushed) servers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.by)
}

// twice is how many jobs were pushed more than once.
func (p *pushed) twice() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, times := range p.jobs {
		if times > 1 {
			n++
		}
	}
	return n
}
