package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

// What follows appears with the verdict: of a success, of a death, and of a handler
// that was left behind.
func TestFollowRidesWithTheVerdict(t *testing.T) {
	jobBubble(t, func(s *jobStand) {
		s.add(forebay.JobOptions{}, "well", "ill")
		s.add(forebay.JobOptions{Timeout: time.Second}, "hung")
		release := make(chan struct{})
		stop := s.run(worker.Config{CancelGrace: time.Second, Jobs: worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
			if j.ID != "well" && j.ID != "ill" && j.ID != "hung" {
				return nil, nil
			}
			j.Follow(func(set forebay.Settlement) forebay.Settlement {
				next := forebay.Message{ID: j.ID + "-" + set.Verdict.String(), Queue: j.Queue, Kind: "k", Payload: []byte(`{}`), Job: &forebay.JobOptions{}}
				set.Next = append(set.Next, next)
				return set
			})
			switch j.ID {
			case "ill":
				return nil, forebay.Permanent(errors.New("no"))
			case "hung":
				<-release
			}
			return []byte(`1`), nil
		})})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for _, id := range []string{"well-ack", "ill-dead", "hung-retry"} {
			if j := s.job(id); j.State != forebay.StateCompleted {
				t.Errorf("%s is %s", id, j.State)
			}
		}
		close(release)
		synctest.Wait()
		stop()
	})
}
