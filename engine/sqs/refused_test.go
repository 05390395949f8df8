package sqs_test

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/outbox"
	"github.com/forebayhq/forebay/engine/route"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// limit sets how large a message of the queue may be.
func (s *stand) limit(bytesOf string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, "http://sqs.test/",
		bytes.NewBufferString(`{"QueueUrl":"q","Attributes":{"MaximumMessageSize":"`+bytesOf+`"}}`))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "AmazonSQS.SetQueueAttributes")
	res, err := s.ep.client.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		s.Fatal(res, err)
	}
	res.Body.Close()
}

// An event was accepted while SQS was away, and SQS refuses it for good when it is back:
// it is a dead letter of its queue, by the name that people know, and can be replayed.
func TestRefusedForGoodIsADeadLetterOfItsQueue(t *testing.T) {
	inBubble(t, nil, func(s *stand) {
		local, err := sqlite.Open(sqlite.Config{})
		if err != nil {
			s.Fatal(err)
		}
		defer local.Close()
		box, err := outbox.New(s.Engine, local, outbox.Config{Own: []string{"q"}})
		if err != nil {
			s.Fatal(err)
		}
		all, err := route.New(local, map[string]engine.Engine{"q": box})
		if err != nil {
			s.Fatal(err)
		}
		ctx, cancel := context.WithCancel(s.Context())
		done := make(chan error)
		go func() { done <- box.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				s.Error(err)
			}
		}()
		s.put(message("first")) // the queue comes to be
		s.limit("1024")
		s.spoil(func(string) fault { return breaks })
		large := message("large")
		large.Payload = bytes.Repeat([]byte("x"), 2000)
		res, err := all.Send(s.Context(), []forebay.Message{message("a"), large, message("b")})
		for _, r := range res {
			if err != nil || r.Err != nil {
				s.Fatal(res, err)
			}
		}
		s.spoil(func(string) fault { return none })
		time.Sleep(2 * time.Minute)
		letters, _ := engine.As[engine.DeadLetters](all)
		dead, err := letters.Dead(s.Context(), engine.DeadQuery{})
		if err != nil || len(dead) != 1 || dead[0].Message.Queue != "q" || dead[0].Message.ID != "large" || len(dead[0].Message.Payload) != 2000 ||
			dead[0].Cause.Code != "outbox" || dead[0].Cause.Message == "" {
			s.Fatalf("dead letters are %+v, %v", dead, err)
		}
		s.limit("4096")
		if errs, err := letters.Replay(s.Context(), []int64{dead[0].Seq}); err != nil || errs[0] != nil {
			s.Fatal(errs, err)
		}
		time.Sleep(2 * time.Minute)
		s.arrive(all, []string{"first", "a", "b", "large"})
	})
}
