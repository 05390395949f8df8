//go:build e2e && linux

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	shape "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// sqsRecord is what clients were told, to compare with what they see. Messages are told by
// their ids of SQS: a sending whose answer was lost is repeated by the SDK, and is then
// two messages with one body.
type sqsRecord struct {
	mu      sync.Mutex
	tick    int                     // grows with each delete that was acknowledged
	sent    map[string]bool         // ids whose sending was acknowledged
	deleted map[string]int          // those whose deleting was, and at which tick
	unsure  map[string]bool         // whose deleting got no answer: it may be done
	seen    map[string]map[int]bool // receive counts that were told
	wrong   []string
}

func (r *sqsRecord) now() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tick
}

func (r *sqsRecord) complain(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// What SQS clients were told holds through twenty kills: what was sent is there, what
// was deleted stays away, counts of receives go on, and what is in flight stays there.
func TestEndpointWhileServerIsKilled(t *testing.T) {
	const kills = 20
	s := sqsServer(t)
	c := s.sqsClient()
	load := s.makeQueue(c, "load", map[string]string{"VisibilityTimeout": "5"})
	held := s.makeQueue(c, "held", map[string]string{"VisibilityTimeout": "3600"})
	handles := hold(t, c, held)

	r := &sqsRecord{sent: map[string]bool{}, deleted: map[string]int{}, unsure: map[string]bool{}, seen: map[string]map[int]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	var progress atomic.Int64
	for i := range 4 {
		clients.Go(func() { r.sendLoop(ctx, c, load, i, &progress) })
		clients.Go(func() { r.receiveLoop(ctx, c, load) })
	}
	for range kills {
		before := progress.Load()
		if !eventually(t, time.Minute, func() bool { return progress.Load() > before+50 }) {
			t.Fatal("nothing is sent any more")
		}
		s.kill()
		s.start()
	}
	stop()
	clients.Wait()
	r.drain(t, c, load)
	for _, w := range r.wrong {
		t.Error(w)
	}
	for id := range r.sent {
		if r.deleted[id] == 0 && !r.unsure[id] {
			t.Errorf("message %s was sent and is not there (received with counts %v)", id, r.seen[id])
		}
	}
	t.Logf("%d messages sent, %d deleted, %d kills", len(r.sent), len(r.deleted), kills)
	letGo(t, c, held, handles)
}

func (r *sqsRecord) sendLoop(ctx context.Context, c *sqs.Client, url string, sender int, progress *atomic.Int64) {
	for n := 0; ctx.Err() == nil; n++ {
		entries := make([]shape.SendMessageBatchRequestEntry, 10)
		for k := range entries {
			entries[k] = shape.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(k)), MessageBody: aws.String(fmt.Sprintf("%d-%d-%d", sender, n, k))}
		}
		out, err := c.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
		if err != nil {
			continue // the SDK has tried for a while; what was stored all the same may come
		}
		r.mu.Lock()
		for _, ok := range out.Successful {
			r.sent[*ok.MessageId] = true
		}
		r.mu.Unlock()
		progress.Add(int64(len(out.Successful)))
	}
}

func (r *sqsRecord) receiveLoop(ctx context.Context, c *sqs.Client, url string) {
	for n := 0; ctx.Err() == nil; n++ {
		r.receive(ctx, c, url, n%3 == 0)
	}
}

// receive takes some, and deletes them unless they are to come again.
func (r *sqsRecord) receive(ctx context.Context, c *sqs.Client, url string, leave bool) (got int) {
	begun := r.now()
	out, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageSystemAttributeNames: []shape.MessageSystemAttributeName{"ApproximateReceiveCount"},
	})
	if err != nil || len(out.Messages) == 0 {
		return 0
	}
	entries := make([]shape.DeleteMessageBatchRequestEntry, len(out.Messages))
	r.mu.Lock()
	for i, m := range out.Messages {
		entries[i] = shape.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), ReceiptHandle: m.ReceiptHandle}
		count, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
		if at := r.deleted[*m.MessageId]; at != 0 && at <= begun {
			r.complain("message %s came again after its deletion was acknowledged", *m.MessageId)
		}
		if r.seen[*m.MessageId] == nil {
			r.seen[*m.MessageId] = map[int]bool{}
		}
		if r.seen[*m.MessageId][count] {
			r.complain("message %s says for the second time that it is received for the %dth time", *m.MessageId, count)
		}
		r.seen[*m.MessageId][count] = true
	}
	r.mu.Unlock()
	if leave {
		return len(out.Messages)
	}
	gone, err := c.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		for _, m := range out.Messages {
			r.unsure[*m.MessageId] = true
		}
		return len(out.Messages)
	}
	for _, ok := range gone.Successful {
		i, _ := strconv.Atoi(*ok.Id)
		r.tick++
		r.deleted[*out.Messages[i].MessageId] = r.tick
	}
	return len(out.Messages)
}

// drain takes all that is left, also what is in flight still.
func (r *sqsRecord) drain(t *testing.T, c *sqs.Client, url string) {
	t.Helper()
	empty := func() bool {
		out, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []shape.QueueAttributeName{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		return out.Attributes["ApproximateNumberOfMessages"] == "0" && out.Attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
	}
	if !eventually(t, 2*time.Minute, func() bool { return r.receive(t.Context(), c, url, false) == 0 && empty() }) {
		t.Error("the queue is not empty in the end")
	}
}

// hold receives messages for an hour.
func hold(t *testing.T, c *sqs.Client, url string) map[string]string {
	t.Helper()
	for i := range 20 {
		if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	handles := map[string]string{}
	for len(handles) < 20 {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 5})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			handles[*m.Body] = *m.ReceiptHandle
		}
	}
	return handles
}

// letGo finds that what was held was handed to nobody, and that its handles are good.
func letGo(t *testing.T, c *sqs.Client, url string, handles map[string]string) {
	t.Helper()
	out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
	if err != nil || len(out.Messages) > 0 {
		t.Fatalf("what is in flight for an hour was handed out: %+v, %v", out, err)
	}
	for body, handle := range handles {
		in := &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: &handle, VisibilityTimeout: 7200}
		if _, err := c.ChangeMessageVisibility(t.Context(), in); err != nil {
			t.Errorf("the handle of %s: %v", body, err)
		}
		if _, err := c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: &handle}); err != nil {
			t.Errorf("the handle of %s: %v", body, err)
		}
	}
	counts, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []shape.QueueAttributeName{"All"}})
	if err != nil || counts.Attributes["ApproximateNumberOfMessagesNotVisible"] != "0" {
		t.Errorf("after all were deleted: %v, %v", counts.Attributes, err)
	}
}
