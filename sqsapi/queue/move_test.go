package queue_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

// deadLetters makes queues whose dead letter queue has n messages of each.
func (v *env) deadLetters(n int, sources ...string) {
	v.Helper()
	v.create("dead")
	for _, q := range sources {
		v.create(q, "RedrivePolicy", policyTo("dead", 1))
		for i := range n {
			v.send(q, fmt.Sprintf("%s-%d", q, i))
		}
		for range (n + 9) / 10 {
			v.receive(q, hidden(0))
		}
		v.bodies(v.receive(q))
	}
}

func (v *env) start(in queue.StartMoveInput) string {
	v.Helper()
	in.SourceArn = arn("dead")
	out, err := v.s.StartMessageMoveTask(v.ctx, in)
	v.fine(err)
	return out.TaskHandle
}

// tasks tells of the last tasks of the dead letter queue.
func (v *env) tasks() []queue.MoveTask {
	v.Helper()
	ten := 10
	out, err := v.s.ListMessageMoveTasks(v.ctx, queue.ListMovesInput{SourceArn: arn("dead"), MaxResults: &ten})
	v.fine(err)
	return out.Results
}

func (v *env) waiting(name string) string { return v.attribute(name, "ApproximateNumberOfMessages") }

func slow(rate int) queue.StartMoveInput { return queue.StartMoveInput{MaxPerSecond: &rate} }

func TestEdge14MoveToADestination(t *testing.T) {
	bubble(t, func(v *env) {
		v.deadLetters(2, "a")
		v.create("other")
		first := v.receive("dead", hidden(0), most(1))[0]
		v.start(queue.StartMoveInput{DestinationArn: arn("other")})
		time.Sleep(2 * time.Second)
		task := v.tasks()[0]
		if task.Status != "COMPLETED" || task.Moved != 2 || *task.ToMove != 2 || task.TaskHandle != "" || task.DestinationArn != arn("other") || task.SourceArn != arn("dead") {
			t.Errorf("got %+v", task)
		}
		got := v.receive("other")
		if len(got) != 2 || got[0].MessageId == first.MessageId || got[0].Attributes["ApproximateReceiveCount"] != "1" || got[0].Attributes["DeadLetterQueueSourceArn"] != "" {
			t.Errorf("got %+v", got)
		}
		if sent := got[0].Attributes["SentTimestamp"]; sent == first.Attributes["SentTimestamp"] {
			t.Error("its time did not begin again")
		}
		if n := v.waiting("dead"); n != "0" {
			t.Errorf("%s are left", n)
		}
	})
}

func TestEdge14MoveBackToSeveralSources(t *testing.T) {
	bubble(t, func(v *env) {
		v.deadLetters(3, "a", "b")
		v.start(queue.StartMoveInput{})
		time.Sleep(2 * time.Second)
		if task := v.tasks()[0]; task.Status != "COMPLETED" || task.Moved != 6 {
			t.Errorf("got %+v", task)
		}
		v.bodies(v.receive("a"), "a-0", "a-1", "a-2")
		v.bodies(v.receive("b"), "b-0", "b-1", "b-2")
	})
}

func TestEdge14MoveRatesAndCancel(t *testing.T) {
	bubble(t, func(v *env) {
		v.deadLetters(10, "a")
		handle := v.start(slow(1))
		task := v.tasks()[0]
		if task.Status != "RUNNING" || task.TaskHandle != handle || task.MaxPerSecond != 1 || *task.ToMove != 10 {
			t.Errorf("got %+v", task)
		}
		time.Sleep(3500 * time.Millisecond)
		if n := v.waiting("a"); n != "3" {
			t.Errorf("%s were moved in 3.5 s", n)
		}
		_, err := v.s.StartMessageMoveTask(v.ctx, queue.StartMoveInput{SourceArn: arn("dead")})
		if f := v.refused(err, "InvalidParameterValueException"); !strings.Contains(f.Message, "already a task running") {
			t.Errorf("says %q", f.Message)
		}
		out, err := v.s.CancelMessageMoveTask(v.ctx, queue.MoveHandle{TaskHandle: handle})
		v.fine(err)
		if out.Moved != 3 {
			t.Errorf("cancelled after %d", out.Moved)
		}
		if task := v.tasks()[0]; task.Status != "CANCELLING" || task.TaskHandle != "" {
			t.Errorf("got %+v", task)
		}
		time.Sleep(2 * time.Second)
		if task := v.tasks()[0]; task.Status != "CANCELLED" || task.Moved > 4 {
			t.Errorf("got %+v", task)
		}
		_, err = v.s.CancelMessageMoveTask(v.ctx, queue.MoveHandle{TaskHandle: handle})
		v.refused(err, "InvalidParameterValueException")
		v.start(slow(500))
		time.Sleep(time.Second)
		if tasks := v.tasks(); len(tasks) != 2 || tasks[0].Status != "COMPLETED" || tasks[1].Status != "CANCELLED" {
			t.Errorf("got %+v", tasks)
		}
	})
}

func TestEdge14MoveFailsWhenTheDestinationIsGone(t *testing.T) {
	bubble(t, func(v *env) {
		v.deadLetters(10, "a")
		v.create("other")
		in := slow(1)
		in.DestinationArn = arn("other")
		v.start(in)
		time.Sleep(3500 * time.Millisecond)
		v.fine(v.s.DeleteQueue(v.ctx, queue.NamedInput{QueueUrl: "other"}))
		time.Sleep(2 * time.Second)
		task := v.tasks()[0]
		if task.Status != "FAILED" || task.FailureReason != "AWS.SimpleQueueService.NonExistentQueue" || task.Moved != 3 {
			t.Errorf("got %+v", task)
		}
		if n := v.waiting("dead"); n != "7" {
			t.Errorf("%s are left", n)
		}
	})
}

func TestMoveFailsWhenASourceIsNotKnown(t *testing.T) {
	bubble(t, func(v *env) {
		v.deadLetters(1, "a")
		v.send("dead", "sent here")
		v.start(queue.StartMoveInput{})
		time.Sleep(time.Second)
		if task := v.tasks()[0]; task.Status != "FAILED" || task.FailureReason != "CouldNotDetermineMessageSource" || task.Moved != 1 {
			t.Errorf("got %+v", task)
		}
		v.one("a", "a-0")
		v.one("dead", "sent here")
	})
}

func TestEdge14MoveRefuses(t *testing.T) {
	bubble(t, func(v *env) {
		v.deadLetters(0, "a")
		v.create("x.fifo")
		start := func(in queue.StartMoveInput) error {
			_, err := v.s.StartMessageMoveTask(v.ctx, in)
			return err
		}
		cancel := func(handle string) error {
			_, err := v.s.CancelMessageMoveTask(v.ctx, queue.MoveHandle{TaskHandle: handle})
			return err
		}
		v.refused(start(queue.StartMoveInput{SourceArn: arn("a")}), "InvalidParameterValueException")
		v.refused(start(queue.StartMoveInput{SourceArn: arn("none")}), "ResourceNotFoundException")
		f := v.refused(start(queue.StartMoveInput{SourceArn: arn("dead"), DestinationArn: arn("none")}), "ResourceNotFoundException")
		if _, status, _ := f.Describe(); status != 404 {
			t.Errorf("status %d", status)
		}
		v.refused(start(queue.StartMoveInput{SourceArn: arn("dead"), DestinationArn: arn("x.fifo")}), "InvalidParameterValueException")
		v.refused(start(queue.StartMoveInput{SourceArn: arn("dead"), DestinationArn: arn("dead")}), "InvalidParameterValueException")
		v.refused(start(queue.StartMoveInput{}), "MissingRequiredParameterException")
		for _, rate := range []int{0, 501} {
			in := slow(rate)
			in.SourceArn = arn("dead")
			v.refused(start(in), "InvalidParameterValueException")
		}
		v.refused(cancel(""), "MissingRequiredParameterException")
		v.refused(cancel("foobared"), "InvalidParameterValueException")
		text := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
		v.refused(cancel(text(`{"taskId":"x","sourceArn":"invalid"}`)), "ResourceNotFoundException")
		v.refused(cancel(text(`{"taskId":"x\u0000","sourceArn":"`+arn("dead")+`"}`)), "ResourceNotFoundException")
	})
}

func TestMoveKeepsTheLastTen(t *testing.T) {
	bubble(t, func(v *env) {
		v.deadLetters(0, "a")
		for range 13 {
			v.start(queue.StartMoveInput{})
			time.Sleep(time.Second)
		}
		if n := len(v.tasks()); n != 10 {
			t.Errorf("%d are listed", n)
		}
	})
}

func TestMoveEndsThoughConsumersFail(t *testing.T) {
	bubble(t, func(v *env) {
		v.deadLetters(5, "a")
		v.start(slow(10))
		for range 40 { // all that comes back fails again at once, and is dead again
			v.receive("a", hidden(0))
			time.Sleep(100 * time.Millisecond)
		}
		if task := v.tasks()[0]; task.Status != "COMPLETED" || task.Moved != 5 {
			t.Errorf("got %+v", task)
		}
	})
}
