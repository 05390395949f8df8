//go:build e2e && linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// jobCrowd are users who add jobs one after the other.
type jobCrowd struct {
	users int
	every time.Duration

	mu    sync.Mutex
	n     int
	acked []string // ids of jobs that were answered with 202
}

// during adds jobs, and does something after a while; those who add go on until that
// is done.
func (c *jobCrowd) during(s *server, after time.Duration, do func()) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	var users sync.WaitGroup
	defer users.Wait()
	defer stop()
	for range c.users {
		users.Go(func() {
			again := time.NewTicker(c.every)
			defer again.Stop()
			for ctx.Err() == nil {
				c.add(ctx, s.url)
				select {
				case <-again.C:
				case <-ctx.Done():
				}
			}
		})
	}
	wait(s.t, after)
	do()
}

func (c *jobCrowd) add(ctx context.Context, server string) {
	c.mu.Lock()
	c.n++
	body := fmt.Appendf(nil, `{"id":"crowd-%05d","queue":"work","name":"nothing","data":{"n":%d}}`, c.n, c.n)
	c.mu.Unlock()
	status, answer, err := post(ctx, server+"/api/jobs", body, nil)
	var added struct{ JobID string }
	if err != nil || status != http.StatusAccepted || json.Unmarshal([]byte(answer), &added) != nil {
		return // refused or cut off: it may be there, or not
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked = append(c.acked, added.JobID)
}
