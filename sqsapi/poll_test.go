package sqsapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/queue"
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
	synctest.Test(t, func(t *testing.T) {
		eng, err := sqlite.Open(sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer eng.Close()
		service, err := queue.New(queue.Config{Engine: eng})
		if err != nil {
			t.Fatal(err)
		}
		front, err := sqsapi.New(sqsapi.Config{Service: service, Unsigned: true})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(action, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/", strings.NewReader(body))
			r.RemoteAddr = "127.0.0.1:1"
			r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
			w := httptest.NewRecorder()
			front.ServeHTTP(w, r)
			return w
		}
		ask("CreateQueue", `{"QueueName":"q"}`)
		began := time.Now()
		done := make(chan *httptest.ResponseRecorder, 1)
		go func() { done <- ask("ReceiveMessage", longPoll) }()
		synctest.Wait()
		if front.Polls() != 1 {
			t.Fatal("nothing waits")
		}
		front.Close()
		front.Close()
		for _, w := range []*httptest.ResponseRecorder{<-done, ask("ReceiveMessage", longPoll)} {
			if w.Code != 200 || w.Body.String() != "{}" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		if waited := time.Since(began); waited > 0 { // the clock of the bubble stands still while anybody works
			t.Errorf("it waited for %s", waited)
		}
		if w := ask("SendMessage", `{"QueueUrl":"q","MessageBody":"hello"}`); w.Code != 200 {
			t.Errorf("a send after Close: %d %s", w.Code, w.Body)
		}
	})
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
