package queue_test

import (
	"testing"
	"time"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

func TestSendReceiveDelete(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		sent := v.send(q, "hello", text("k", "v"))
		if sent.MD5OfBody != "5d41402abc4b2a76b9719d911017c592" {
			t.Errorf("the MD5 of the body is %s", sent.MD5OfBody)
		}
		m := v.one(q, "hello")
		if m.MessageId != sent.MessageId || m.MD5OfBody != sent.MD5OfBody || m.MD5OfAttributes != sent.MD5OfAttributes || sent.MD5OfAttributes == "" {
			t.Errorf("sent %+v, received %+v", sent, m)
		}
		v.bodies(v.receive(q))
		v.fine(v.hide(q, m, 60))
		v.fine(v.remove(q, m))
		v.fine(v.remove(q, m))
		if n := v.attribute(q, "ApproximateNumberOfMessagesNotVisible"); n != "0" {
			t.Errorf("%s are in flight", n)
		}
	})
}

func TestBatches(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		out, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: []queue.SendInput{
			{ID: "1", MessageBody: "one"}, {ID: "2"}, {ID: "3", MessageBody: "three"},
		}})
		v.fine(err)
		if len(out.Successful) != 2 || len(out.Failed) != 1 || out.Failed[0].ID != "2" || out.Failed[0].Code != "MissingParameter" || !out.Failed[0].SenderFault {
			t.Fatalf("got %+v", out)
		}
		got := v.receive(q)
		v.bodies(got, "one", "three")
		var in queue.HandleBatchInput
		in.QueueUrl = q
		for i, m := range got {
			in.Entries = append(in.Entries, queue.HandleInput{ID: string(rune('a' + i)), ReceiptHandle: m.ReceiptHandle})
		}
		in.Entries = append(in.Entries, queue.HandleInput{ID: "bad", ReceiptHandle: "x"})
		done, err := v.s.DeleteMessageBatch(v.ctx, in)
		v.fine(err)
		if len(done.Successful) != 2 || len(done.Failed) != 1 || done.Failed[0].Code != "ReceiptHandleIsInvalid" {
			t.Fatalf("got %+v", done)
		}
	})
}

func TestWaitOfTheQueue(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a", "ReceiveMessageWaitTimeSeconds", "7")
		start := time.Now()
		v.bodies(v.receive(q))
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("waited for %s", took)
		}
		v.bodies(v.receive(q, wait(0)))
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("a short poll waited: %s", took)
		}
	})
}

func TestDeleteEndsALongPoll(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		start, deleted := time.Now(), make(chan error)
		go func() {
			time.Sleep(5 * time.Second)
			deleted <- v.s.DeleteQueue(v.ctx, queue.NamedInput{QueueUrl: q})
		}()
		_, err := v.s.ReceiveMessage(v.ctx, queue.ReceiveInput{QueueUrl: q, WaitTimeSeconds: new(20)})
		v.refused(err, "QueueDoesNotExist")
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it ended after %s", took)
		}
		if err := <-deleted; err != nil {
			t.Error(err)
		}
	})
}

// A quiet group of a standard queue does not wait behind all that a noisy one has.
func TestNoisyGroupDoesNotDelayQuietOnes(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		for range 300 {
			v.send(q, "noisy", group("noisy"))
		}
		v.send(q, "quiet", group("quiet"))
		for before := 0; ; {
			for _, m := range v.receive(q, most(10)) {
				if m.Body == "quiet" {
					return
				}
				before++
			}
			if before > 70 {
				v.Fatalf("%d of a noisy group came before the one of a quiet group", before)
			}
		}
	})
}
