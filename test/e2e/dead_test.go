//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay/api"
)

// morgue counts what a handler was called for, which fails of three causes until these
// are mended.
type morgue struct {
	mended atomic.Bool
	life   atomic.Int64
	mu     sync.Mutex
	well   map[int][]int64 // by number, the lives of the server in which it ended well
}

func (m *morgue) do(_ string, data json.RawMessage) (any, error) {
	var d struct{ N int }
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	if !m.mended.Load() {
		switch {
		case d.N%10 < 6:
			return nil, fmt.Errorf("no user %d", d.N)
		case d.N%10 < 9:
			return nil, fmt.Errorf("order '%x' is unknown", d.N)
		}
		return nil, fmt.Errorf("card %d was declined", d.N)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.well[d.N] = append(m.well[d.N], m.life.Load())
	return nil, nil
}

// Ten thousand jobs die of three causes, and are seen as three. A canary tells that the
// cause is not mended; then all are replayed, after another canary and at a rate,
// cancelled half-way, continued, with the server killed in between. None is left, and
// none runs twice but where the server died before it knew.
func TestTenThousandDeadLetters(t *testing.T) {
	const all, rate = 10_000, 2500
	m := &morgue{well: map[int][]int64{}}
	target := newJobTarget(t, m.do)
	s := jobServer(t, "handlers.work.queue=work", "handlers.work.url="+target.url, "queues.work.concurrency=100", "queues.work.attempts=1")
	for k := range all / 1000 {
		items := make([]options, 1000)
		for n := range items {
			items[n] = options{"queue": "work", "name": "work", "data": options{"n": k*1000 + n}}
		}
		s.must(http.StatusOK, http.MethodPost, "/api/jobs/bulk", options{"items": items}, nil)
	}
	begun := time.Now()
	var groups api.DeadGroupList
	if !eventually(t, time.Minute, func() bool {
		s.must(http.StatusOK, http.MethodGet, "/api/dead/groups?order=largest", nil, &groups)
		sum := int64(0)
		for _, g := range groups.Items {
			sum += g.Count
		}
		return sum == all
	}) || len(groups.Items) != 3 || groups.Items[0].Count != 6000 || groups.Items[1].Count != 3000 || groups.Items[2].Count != 1000 {
		t.Fatalf("the causes are %+v", groups.Items)
	}
	t.Logf("10,000 dead letters of three causes after %s", time.Since(begun))

	out, err := s.forebay("dead", "replay", "--group", groups.Items[2].Fingerprint, "--canary", "10", "--watch")
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(out, "canary") || !strings.Contains(out, "was declined") {
		t.Errorf("the canary of what is not mended: %v: %s", err, out)
	}
	m.mended.Store(true)
	begun = time.Now()
	var work api.DeadWork
	if err := json.Unmarshal([]byte(s.mustForebay("dead", "replay", "--all", "--canary", "10", "--rate", fmt.Sprint(rate), "--json")), &work); err != nil || work.Total != all {
		t.Fatalf("begun: %+v, %v", work, err)
	}
	at := func() (w api.DeadWork) {
		s.must(http.StatusOK, http.MethodGet, "/api/dead/actions/"+work.ID, nil, &w)
		return w
	}
	far := func(n int) {
		t.Helper()
		if !eventually(t, time.Minute, func() bool { return at().Done >= n }) {
			t.Fatalf("it is not as far as %d: %+v", n, at())
		}
	}
	far(all / 3)
	s.mustForebay("dead", "actions", "cancel", work.ID)
	half := at()
	if half.State != api.DeadCancelled || half.Done >= all || half.Canary.Verdict != "passed" || half.Canary.Passed != 10 {
		t.Errorf("half-way: %+v %+v", half, half.Canary)
	}
	s.mustForebay("dead", "actions", "resume", work.ID)
	far(half.Done + all/4)
	s.kill()
	wait(t, 50*time.Millisecond) // what it has called by then is on this side
	m.life.Add(1)
	s.start()
	shown := s.mustForebay("dead", "actions", "show", work.ID, "--watch")
	if end := at(); end.State != api.DeadCompleted || end.Done != all || end.Failed != 0 || end.Runs < 3 || !strings.Contains(shown, fmt.Sprintf("%d of %d, 0 failed", all, all)) {
		t.Errorf("the end: %+v: %s", end, shown)
	}
	t.Logf("replayed at %d a second, cancelled, continued and killed in between, in %s", rate, time.Since(begun))
	m.eachOnce(t, all)
	if out := s.mustForebay("dead", "groups"); out != "no dead letters\n" {
		t.Errorf("left is %s", out)
	}
}

// eachOnce checks that so many ended well, each once in a life of the server.
func (m *morgue) eachOnce(t *testing.T, all int) {
	t.Helper()
	seen := func() int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.well)
	}
	if !eventually(t, time.Minute, func() bool { return seen() == all }) {
		t.Errorf("%d of %d ended well", seen(), all)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	again := 0
	for n, lives := range m.well {
		switch {
		case len(lives) == 2 && lives[0] != lives[1]:
			again++
		case len(lives) > 1:
			t.Errorf("number %d ended well in the lives %v", n, lives)
		}
	}
	t.Logf("%d ran in both lives", again)
}
