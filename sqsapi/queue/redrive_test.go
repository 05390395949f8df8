package queue_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

func trace(value string) func(*queue.SendInput) {
	return func(in *queue.SendInput) {
		in.SystemAttributes = map[string]queue.Attribute{"AWSTraceHeader": {DataType: "String", StringValue: &value}}
	}
}

func TestEdge13DeadLetterQueue(t *testing.T) {
	bubble(t, func(v *env) {
		const header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
		dead := v.create("dead")
		q := v.create("a", "RedrivePolicy", policyTo("dead", "1"), "VisibilityTimeout", "1") // a text, as ministack#644
		sent := v.send(q, "x", text("k", "v"), trace(header), group("tenant"))
		first := v.one(q, "x")
		time.Sleep(2 * time.Second)
		v.bodies(v.receive(q)) // the second receive moves it
		if n := v.attribute(q, "ApproximateNumberOfMessages") + v.attribute(q, "ApproximateNumberOfMessagesNotVisible"); n != "00" {
			t.Errorf("%s are still there", n)
		}
		m := v.one(dead, "x")
		for name, want := range map[string]string{
			"AWSTraceHeader": header, "DeadLetterQueueSourceArn": arn("a"), "MessageGroupId": "tenant",
			"SentTimestamp": first.Attributes["SentTimestamp"], "ApproximateReceiveCount": "2",
		} {
			if m.Attributes[name] != want {
				t.Errorf("%s is %q, want %q", name, m.Attributes[name], want)
			}
		}
		if m.MessageId != sent.MessageId || m.MD5OfAttributes != sent.MD5OfAttributes || *m.MessageAttributes["k"].StringValue != "v" {
			t.Errorf("sent %+v, in the dead letter queue %+v", sent, m)
		}
		if sent.MD5OfSystem == "" {
			t.Error("the MD5 of the system attributes is missing")
		}
		v.fine(v.remove(dead, m))
		v.bodies(v.receive(dead))
	})
}

func TestRedriveCounts(t *testing.T) {
	bubble(t, func(v *env) {
		dead := v.create("dead")
		q := v.create("a", "RedrivePolicy", policyTo("dead", 3))
		v.send(q, "x")
		for n := 1; n <= 3; n++ {
			m := v.one(q, "x")
			if is := m.Attributes["ApproximateReceiveCount"]; is != strconv.Itoa(n) {
				t.Errorf("receive %d counts %s", n, is)
			}
			v.bodies(v.receive(dead))
			v.fine(v.hide(q, m, 0))
		}
		v.bodies(v.receive(q))
		if m := v.one(dead, "x"); m.Attributes["ApproximateReceiveCount"] != "4" {
			t.Errorf("in the dead letter queue it was received %s times", m.Attributes["ApproximateReceiveCount"])
		}
	})
}

func TestReport14RedriveOfFifo(t *testing.T) {
	bubble(t, func(v *env) {
		dead := v.create("dead.fifo")
		q := v.create("a.fifo", "RedrivePolicy", policyTo("dead.fifo", 1))
		v.sendTo(q, "g-1", "g-2")
		m := v.one(q, "g-1", most(1))
		time.Sleep(time.Minute)
		v.one(q, "g-2") // localstack#10281: the group goes on in the same receive
		d := v.one(dead, "g-1")
		if d.MessageId != m.MessageId || d.Attributes["MessageGroupId"] != "g" || d.Attributes["MessageDeduplicationId"] != m.MessageId || d.Attributes["SequenceNumber"] <= m.Attributes["SequenceNumber"] {
			t.Errorf("in the source %+v, in the dead letter queue %+v", m, d)
		}
		if d.Attributes["SentTimestamp"] == m.Attributes["SentTimestamp"] {
			t.Error("its time did not begin again")
		}
	})
}

func TestRedriveWakesALongPollOfTheDeadLetterQueue(t *testing.T) {
	bubble(t, func(v *env) {
		dead := v.create("dead")
		q := v.create("a", "RedrivePolicy", policyTo("dead", 1), "VisibilityTimeout", "5")
		v.send(q, "x")
		v.one(q, "x")
		ended := make(chan []queue.Message)
		go func() { ended <- v.receive(q, wait(20)) }()
		v.one(dead, "x", wait(20))
		v.bodies(<-ended)
	})
}

func TestRedriveAllowPolicy(t *testing.T) {
	bubble(t, func(v *env) {
		v.create("none", "RedriveAllowPolicy", `{"redrivePermission":"denyAll"}`)
		v.create("some", "RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":["`+arn("a")+`"]}`)
		v.create("dead.fifo")
		v.create("a", "RedrivePolicy", policyTo("some", 1))
		v.create("b")
		v.refused(v.set("b", "RedrivePolicy", policyTo("some", 1)), "InvalidParameterValueException")
		v.refused(v.set("b", "RedrivePolicy", policyTo("none", 1)), "InvalidParameterValueException")
		v.refused(v.set("b", "RedrivePolicy", policyTo("dead.fifo", 1)), "InvalidParameterValueException")
		out, err := v.s.ListDeadLetterSourceQueues(v.ctx, queue.ListSourcesInput{QueueUrl: "some"})
		v.fine(err)
		if !slices.Equal(out.QueueUrls, []string{"a"}) {
			t.Errorf("sources are %v", out.QueueUrls)
		}
	})
}

func TestRedriveToAQueueThatIsGone(t *testing.T) {
	bubble(t, func(v *env) {
		v.create("dead")
		q := v.create("a", "RedrivePolicy", policyTo("dead", 1))
		v.fine(v.s.DeleteQueue(v.ctx, queue.NamedInput{QueueUrl: "dead"}))
		v.send(q, "x")
		v.fine(v.hide(q, v.one(q, "x"), 0))
		v.one(q, "x") // kept where it is, not lost
	})
}

// A message that others sent may have so many headers that it cannot carry where it
// came from. It is handed out, not hidden for ever.
func TestRedriveOfAMessageThatCannotBeMoved(t *testing.T) {
	bubble(t, func(v *env) {
		v.create("dead")
		q := v.create("a", "RedrivePolicy", policyTo("dead", 1))
		full := forebay.Message{ID: "full", Queue: q, Payload: []byte("full"), Headers: map[string]string{}}
		for i := range forebay.MaxHeaders {
			full.Headers[itoa(i)] = "x"
		}
		_, err := v.e.Send(v.ctx, []forebay.Message{full, {ID: "other", Queue: q, Payload: []byte("other")}})
		v.fine(err)
		v.bodies(v.receive(q, hidden(0)), "full", "other")
		v.bodies(v.receive(q), "full")
		v.one("dead", "other")
	})
}

func TestReceiveWorksOffWhatIsNotToBeHandedOut(t *testing.T) {
	bubble(t, func(v *env) {
		dead := v.create("dead")
		q := v.create("a", "RedrivePolicy", policyTo("dead", 1))
		for range 10 {
			_, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: entries(10, "x")})
			v.fine(err)
		}
		for range 10 {
			v.receive(q, hidden(60))
		}
		time.Sleep(time.Minute)
		v.send(q, "fresh")
		v.one(q, "fresh")
		if n := v.waiting(dead); n != "100" {
			t.Errorf("%s are in the dead letter queue", n)
		}
	})
}
