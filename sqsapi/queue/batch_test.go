package queue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

func entries(n int, body string) []queue.SendInput {
	all := make([]queue.SendInput, n)
	for i := range all {
		all[i] = queue.SendInput{ID: fmt.Sprint(i), MessageBody: body}
	}
	return all
}

func TestBatchesThatAreRefusedWhole(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		long := strings.Repeat("x", 1<<19)
		repeated := entries(3, "x")
		repeated[2].ID = "0"
		badID := func(id string) []queue.SendInput { return []queue.SendInput{{ID: id, MessageBody: "x"}} }
		for shape, all := range map[string][][]queue.SendInput{
			"EmptyBatchRequest":            {nil},
			"TooManyEntriesInBatchRequest": {entries(11, "x")},
			"BatchEntryIdsNotDistinct":     {repeated},
			"InvalidBatchEntryId":          {badID(""), badID("a:b"), badID(strings.Repeat("a", 81))},
			"BatchRequestTooLong":          {append(entries(2, long), queue.SendInput{ID: "x", MessageBody: "x"})},
		} {
			for _, in := range all {
				_, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: in})
				v.refused(err, shape)
				if shape == "BatchRequestTooLong" {
					continue
				}
				var handles []queue.HandleInput
				for _, e := range in {
					handles = append(handles, queue.HandleInput{ID: e.ID})
				}
				_, err = v.s.DeleteMessageBatch(v.ctx, queue.HandleBatchInput{QueueUrl: q, Entries: handles})
				v.refused(err, shape)
				_, err = v.s.ChangeMessageVisibilityBatch(v.ctx, queue.HandleBatchInput{QueueUrl: q, Entries: handles})
				v.refused(err, shape)
			}
		}
		out, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: entries(2, long)})
		v.fine(err)
		if len(out.Successful) != 2 {
			t.Errorf("a batch of exactly 1 MiB: %+v", out.Failed)
		}
	})
}

func TestBatchTellsOfTheEntryThatIsTooLong(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a", "MaximumMessageSize", "1024")
		in := entries(2, "x")
		in[1].MessageBody = strings.Repeat("x", 1025)
		out, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: in})
		v.fine(err)
		if len(out.Successful) != 1 || len(out.Failed) != 1 || out.Failed[0].Code != "InvalidParameterValue" {
			t.Errorf("got %+v", out)
		}
	})
}

func TestVisibilityBatch(t *testing.T) {
	bubble(t, func(v *env) {
		for _, q := range []string{v.create("a"), v.create("a.fifo")} {
			for i := range 4 {
				with := []func(*queue.SendInput){}
				if q == "a.fifo" {
					with = append(with, group(fmt.Sprint(i)), dedup(fmt.Sprint(i)))
				}
				v.send(q, fmt.Sprint(i), with...)
			}
			got := v.receive(q)
			v.bodies(got, "0", "1", "2", "3")
			in := queue.HandleBatchInput{QueueUrl: q}
			for i, seconds := range []int{0, 60, 0, 43_201} {
				in.Entries = append(in.Entries, queue.HandleInput{ID: fmt.Sprint(i), ReceiptHandle: got[i].ReceiptHandle, VisibilityTimeout: &seconds})
			}
			in.Entries = append(in.Entries, queue.HandleInput{ID: "none", ReceiptHandle: got[0].ReceiptHandle})
			out, err := v.s.ChangeMessageVisibilityBatch(v.ctx, in)
			v.fine(err)
			if len(out.Successful) != 3 || len(out.Failed) != 2 || out.Failed[0].Code != "InvalidParameterValue" || out.Failed[1].Code != "MissingParameter" {
				t.Errorf("got %+v", out)
			}
			v.bodies(v.receive(q), "0", "2")
		}
	})
}

func TestWideLimits(t *testing.T) {
	bubbleOf(t, queue.Config{Wide: true}, func(v *env) {
		q := v.create("a", "MessageRetentionPeriod", "31536000")
		out, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: entries(1000, "x")})
		v.fine(err)
		if len(out.Successful) != 1000 {
			t.Fatalf("%d were sent", len(out.Successful))
		}
		got := v.receive(q, most(1000), wait(300))
		if len(got) != 1000 {
			t.Fatalf("%d were received", len(got))
		}
		in := queue.HandleBatchInput{QueueUrl: q}
		for i, m := range got {
			in.Entries = append(in.Entries, queue.HandleInput{ID: fmt.Sprint(i), ReceiptHandle: m.ReceiptHandle})
		}
		done, err := v.s.DeleteMessageBatch(v.ctx, in)
		v.fine(err)
		if len(done.Successful) != 1000 {
			t.Errorf("%d were deleted", len(done.Successful))
		}
		v.send(q, "later", delay(31_536_000))
		_, err = v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: entries(1001, "x")})
		v.refused(err, "TooManyEntriesInBatchRequest")
	})
}
