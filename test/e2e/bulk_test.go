//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// The server is killed in the middle of an action on many jobs. The action goes on
// after the next start, and has been done to each job once in the end.
func TestBulkActionWhileServerIsKilled(t *testing.T) {
	const thousands = 5
	s := jobServer(t)
	for k := range thousands {
		var items []options
		for n := range 1000 {
			items = append(items, options{"id": fmt.Sprintf("many-%d-%03d", k, n), "queue": "nobody", "name": "many"})
		}
		var added struct{ Added int }
		s.must(http.StatusOK, http.MethodPost, "/api/jobs/bulk", options{"items": items}, &added)
		if added.Added != len(items) {
			t.Fatalf("%d of %d jobs were added", added.Added, len(items))
		}
	}
	var bulk struct{ JobID string }
	s.must(http.StatusAccepted, http.MethodPost, "/api/jobs/actions", options{"action": "cancel", "q": "queue:nobody"}, &bulk)
	first := fmt.Sprintf("many-%d-999", thousands-1) // the newest one is listed first
	if !eventually(t, time.Minute, func() bool { return s.job(first).State == "cancelled" }) {
		t.Fatal("the action did not begin")
	}
	s.kill()
	s.start()
	j := s.await(bulk.JobID, time.Minute, "completed", "dead")
	var out struct{ Done, Failed int }
	if err := json.Unmarshal(j.Result, &out); err != nil || j.State != "completed" || out.Failed != 0 {
		t.Errorf("the action ended as %+v: %s", j, j.Result)
	}
	t.Logf("%d of %d jobs were left after the kill; the action was handed out %d times", out.Done, thousands*1000, j.Deliveries)
	if left := s.list("queue:nobody state:waiting"); len(left) != 0 {
		t.Errorf("%d jobs or more are still waiting, the first: %s", len(left), left[0].JobID)
	}
	for n := 0; n < 1000; n += 50 {
		id := fmt.Sprintf("many-%d-%03d", n/50%thousands, n)
		if n := types(s.history(id)); n["cancelled"] != 1 {
			t.Errorf("job %s: %v, want cancelled once", id, n)
		}
	}
}
