//go:build e2e && linux

package e2e

import (
	"testing"
	"time"
)

// The server is killed in the middle of image jobs, twenty times on one data folder.
// Each job finishes exactly once, none is charged an attempt, and what was interrupted
// begins again soon, though its lease would last for an hour.
func TestImageJobsWhileServerIsKilled(t *testing.T) {
	const kills = 20
	s := jobServer(t, "queues.images.lease=1h", "queues.images.concurrency=auto", "queues.images.concurrencyMax=2")
	picture := jpegOf(t, photo(1200, 900))
	var ids []string
	var longest time.Duration
	for range kills {
		id := s.upload(picture, "format", "webp", "thumbnails", "80x80").Data.JobID
		ids = append(ids, id)
		s.await(id, 30*time.Second, "active", "completed")
		s.kill()
		killed := time.Now()
		s.start()
		again := func() bool { return s.job(id).State == "completed" || s.startedAfter(id, killed) }
		if !eventually(t, 30*time.Second, again) {
			t.Fatalf("job %s did not begin again: %v", id, s.history(id))
		}
		longest = max(longest, time.Since(killed))
	}
	interrupted := s.completedOnce(ids, 2*time.Minute)
	t.Logf("%d jobs, interrupted %d times; begun again at most %s after a kill", len(ids), interrupted, longest)
	if interrupted < kills/2 {
		t.Errorf("%d kills interrupted %d jobs only: they came too late", kills, interrupted)
	}
	for _, id := range ids {
		s.fetch(s.picture(id).Data.Result.drawn)
	}
}

func (s *server) startedAfter(id string, at time.Time) bool {
	for _, h := range s.history(id) {
		if h.Type == "started" && h.At.After(at) {
			return true
		}
	}
	return false
}

// SIGTERM under a load of jobs, three times: each job that was acknowledged is
// completed exactly once after the next start.
func TestJobsWhileServerIsDeployed(t *testing.T) {
	s := jobServer(t, "handlers.nothing.queue=work", "handlers.nothing.command=true", "queues.work.concurrency=auto")
	crowd := &jobCrowd{users: 8, every: 20 * time.Millisecond}
	for range 3 {
		crowd.during(s, 1500*time.Millisecond, func() {
			if code := s.terminate(45 * time.Second); code != 0 {
				t.Errorf("SIGTERM ended the server with code %d: %s", code, tail(s.log))
			}
		})
		s.start()
	}
	interrupted := s.completedOnce(crowd.acked, 2*time.Minute)
	t.Logf("%d jobs acknowledged, %d of them given back at an end", len(crowd.acked), interrupted)
	if len(crowd.acked) < 50 {
		t.Errorf("only %d jobs were acknowledged", len(crowd.acked))
	}
}
