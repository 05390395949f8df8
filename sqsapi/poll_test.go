package sqsapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/sqsapi"
)

const longPoll = `{"QueueUrl":"q","WaitTimeSeconds":20}`

// poll starts a long poll and waits until the server has it.
func (s *served) poll(t *testing.T, ctx context.Context) <-chan answer {
	t.Helper()
	before := s.front.Polls()
	done := make(chan answer, 1)
	go func() {
		defer close(done)
		r, err := http.NewRequestWithContext(ctx, "POST", s.URL, strings.NewReader(longPoll))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
		if ctx.Err() == nil && ctx.Done() != t.Context().Done() {
			if _, err := s.Server.Client().Do(r); !errors.Is(err, context.Canceled) {
				t.Errorf("a poll that was given up: %v", err)
			}
			return
		}
		done <- s.do(t, r)
	}()
	s.until(t, func() bool { return s.front.Polls() > before })
	return done
}

// until waits for what must come, by asking: the deadline is that of the test.
func (s *served) until(t *testing.T, ready func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it never came")
		}
	}
}

func TestSendWakesALongPoll(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.json(t, "CreateQueue", `{"QueueName":"q"}`)
	done := s.poll(t, t.Context())
	s.json(t, "SendMessage", `{"QueueUrl":"q","MessageBody":"hello"}`)
	if a := <-done; a.status != 200 || !strings.Contains(a.body, `"Body":"hello"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestCloseEndsLongPollsWithAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.json(t, "CreateQueue", `{"QueueName":"q"}`)
	done := s.poll(t, t.Context())
	s.front.Close()
	s.front.Close()
	if a := <-done; a.status != 200 || a.body != "{}" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.json(t, "ReceiveMessage", longPoll); a.status != 200 || a.body != "{}" {
		t.Errorf("after Close: %d %s", a.status, a.body)
	}
	if a := s.json(t, "SendMessage", `{"QueueUrl":"q","MessageBody":"hello"}`); a.status != 200 {
		t.Errorf("a send after Close: %d %s", a.status, a.body)
	}
}

func TestAClientThatLeavesEndsItsPoll(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.json(t, "CreateQueue", `{"QueueName":"q"}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := s.poll(t, ctx)
	cancel()
	<-done
	s.until(t, func() bool { return s.front.Polls() == 0 })
	s.json(t, "SendMessage", `{"QueueUrl":"q","MessageBody":"for the next"}`)
	if a := s.json(t, "ReceiveMessage", `{"QueueUrl":"q","MessageSystemAttributeNames":["All"]}`); !strings.Contains(a.body, `"ApproximateReceiveCount":"1"`) {
		t.Errorf("the poll that ended took the message: %s", a.body)
	}
}

func TestPollsAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *sqsapi.Config) { c.MaxPolls = 1 })
	s.json(t, "CreateQueue", `{"QueueName":"q"}`)
	done := s.poll(t, t.Context())
	if a := s.json(t, "ReceiveMessage", longPoll); a.status != 403 || !strings.Contains(a.body, "RequestThrottled") {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.front.Close()
	<-done
}
