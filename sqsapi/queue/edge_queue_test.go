package queue_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

func TestEdge05CreateAgain(t *testing.T) {
	bubble(t, func(v *env) {
		v.create("a", "VisibilityTimeout", "20")
		v.create("a", "VisibilityTimeout", "20")
		v.create("a")
		v.create("a", "DelaySeconds", "0")
		v.create("dead")
		v.create("b", "RedrivePolicy", policyTo("dead", 3), "Policy", `{"Version":"2012-10-17","Statement":[]}`)
		v.create("b", "RedrivePolicy", policyTo("dead", "3"), "Policy", `{"Statement": [], "Version": "2012-10-17"}`)
		_, err := v.s.CreateQueue(v.ctx, queue.CreateQueueInput{QueueName: "a", Attributes: attrs("VisibilityTimeout", "21")})
		f := v.refused(err, "QueueNameExists")
		if code, _, _ := f.Describe(); code != "QueueAlreadyExists" || !strings.Contains(f.Message, "different value for attribute VisibilityTimeout") {
			t.Errorf("%s: %s", code, f.Message)
		}
		v.refused(v.set("a", "FifoQueue", "true"), "InvalidAttributeName")
		v.create("a.fifo")
		v.refused(v.set("a.fifo", "FifoQueue", "false"), "InvalidAttributeValue")
		if fifo := v.attribute("a.fifo", "FifoQueue"); fifo != "true" {
			t.Errorf("FifoQueue is %q", fifo)
		}
	})
}

func TestCreateRefuses(t *testing.T) {
	bubble(t, func(v *env) {
		for _, c := range []struct {
			name, shape string
			attributes  map[string]string
		}{
			{"", "MissingRequiredParameterException", nil},
			{"a b", "InvalidParameterValueException", nil},
			{"ä", "InvalidParameterValueException", nil},
			{strings.Repeat("a", 81), "InvalidParameterValueException", nil},
			{"a.fifo", "InvalidParameterValueException", nil},
			{".fifo", "InvalidParameterValueException", attrs("FifoQueue", "true")},
			{"a", "InvalidParameterValueException", attrs("FifoQueue", "true")},
			{"a", "InvalidAttributeName", attrs("FifoQueue", "false")},
			{"a", "InvalidAttributeName", attrs("Nothing", "1")},
			{"a", "InvalidAttributeName", attrs("QueueArn", "x")},
			{"a", "InvalidAttributeName", attrs("ContentBasedDeduplication", "true")},
			{"a", "InvalidAttributeValue", attrs("VisibilityTimeout", "43201")},
			{"a", "InvalidAttributeValue", attrs("VisibilityTimeout", "x")},
			{"a", "InvalidAttributeValue", attrs("DelaySeconds", "901")},
			{"a", "InvalidAttributeValue", attrs("MaximumMessageSize", "1023")},
			{"a", "InvalidAttributeValue", attrs("MaximumMessageSize", "1048577")},
			{"a", "InvalidAttributeValue", attrs("MessageRetentionPeriod", "59")},
			{"a", "InvalidAttributeValue", attrs("MessageRetentionPeriod", "1209601")},
			{"a", "InvalidAttributeValue", attrs("ReceiveMessageWaitTimeSeconds", "21")},
			{"a", "InvalidAttributeValue", attrs("Policy", "{")},
			{"a", "InvalidAttributeValue", attrs("RedriveAllowPolicy", `{"redrivePermission":"byQueue"}`)},
			{"a", "InvalidAttributeValue", attrs("SqsManagedSseEnabled", "yes")},
			{"a", "InvalidAttributeValue", attrs("RedrivePolicy", "{")},
			{"a", "InvalidParameterValueException", attrs("RedrivePolicy", `{"deadLetterTargetArn":"dummy","maxReceiveCount":42}`)},
			{"a", "InvalidParameterValueException", attrs("RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:none","maxReceiveCount":42}`)},
			{"a", "InvalidParameterValueException", attrs("RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:none","maxReceiveCount":1001}`)},
			{"a.fifo", "InvalidAttributeValue", attrs("FifoQueue", "true", "FifoThroughputLimit", "perMessageGroupId")},
		} {
			_, err := v.s.CreateQueue(v.ctx, queue.CreateQueueInput{QueueName: c.name, Attributes: c.attributes})
			if f, is := err.(*queue.Fault); !is || f.Shape != c.shape {
				t.Errorf("%q %v: got %v, want %s", c.name, c.attributes, err, c.shape)
			}
		}
		out, err := v.s.ListQueues(v.ctx, queue.ListQueuesInput{})
		v.fine(err)
		if len(out.QueueUrls) != 0 {
			t.Errorf("there are %v", out.QueueUrls)
		}
	})
}

func TestEdge06NewQueue(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		out, err := v.s.GetQueueAttributes(v.ctx, queue.GetAttributesInput{QueueUrl: q, AttributeNames: []string{"All"}})
		v.fine(err)
		now := fmt.Sprint(time.Now().Unix())
		want := attrs("SqsManagedSseEnabled", "true", "MaximumMessageSize", "1048576", "VisibilityTimeout", "30", "MessageRetentionPeriod", "345600",
			"DelaySeconds", "0", "ReceiveMessageWaitTimeSeconds", "0", "QueueArn", "arn:aws:sqs:us-east-1:000000000000:a",
			"ApproximateNumberOfMessages", "0", "ApproximateNumberOfMessagesNotVisible", "0", "ApproximateNumberOfMessagesDelayed", "0",
			"CreatedTimestamp", now, "LastModifiedTimestamp", now)
		if !maps.Equal(out.Attributes, want) {
			t.Errorf("got %v\nwant %v", out.Attributes, want)
		}
		v.fine(v.set(q, "KmsMasterKeyId", "alias/x"))
		if sse := v.attribute(q, "SqsManagedSseEnabled"); sse != "false" {
			t.Errorf("with KMS, SqsManagedSseEnabled is %s", sse)
		}
		v.refused(v.set(q, "KmsMasterKeyId", "x", "SqsManagedSseEnabled", "true"), "InvalidAttributeName")
		v.fine(v.set(q, "SqsManagedSseEnabled", "true"))
		if key := v.attribute(q, "KmsMasterKeyId"); key != "" {
			t.Errorf("with SSE by SQS, KmsMasterKeyId is %s", key)
		}
	})
}

func TestEdge06EmptyRedrivePolicyRemovesIt(t *testing.T) {
	bubble(t, func(v *env) {
		v.create("dead")
		q := v.create("a", "RedrivePolicy", policyTo("dead", 1))
		if p := v.attribute(q, "RedrivePolicy"); p != policyTo("dead", 1) {
			t.Errorf("the policy is %s", p)
		}
		v.fine(v.set(q, "RedrivePolicy", ""))
		if p := v.attribute(q, "RedrivePolicy"); p != "" {
			t.Errorf("the policy is %s", p)
		}
	})
}

// policyTo is a redrive policy to a queue.
func policyTo(name string, count any) string {
	text, _ := json.Marshal(map[string]any{"deadLetterTargetArn": arn(name), "maxReceiveCount": count})
	return string(text)
}

func arn(name string) string { return "arn:aws:sqs:us-east-1:000000000000:" + name }

func TestEdge15Permissions(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		add := func(label string, accounts ...string) error {
			return v.s.AddPermission(v.ctx, queue.AddPermissionInput{QueueUrl: q, Label: label, AWSAccountIds: accounts, Actions: []string{"ReceiveMessage"}})
		}
		remove := func(label string) error {
			return v.s.RemovePermission(v.ctx, queue.RemovePermissionInput{QueueUrl: q, Label: label})
		}
		v.fine(add("one", "111111111111", "222222222222", "111111111111"))
		want := `{"Version":"2008-10-17","Id":"arn:aws:sqs:us-east-1:000000000000:a/SQSDefaultPolicy","Statement":[{"Sid":"one","Effect":"Allow",` +
			`"Principal":{"AWS":["arn:aws:iam::111111111111:root","arn:aws:iam::222222222222:root"]},"Action":"SQS:ReceiveMessage","Resource":"arn:aws:sqs:us-east-1:000000000000:a"}]}`
		if p := v.attribute(q, "Policy"); p != want {
			t.Errorf("the policy is\n%s, want\n%s", p, want)
		}
		if f := v.refused(add("one", "111111111111"), "InvalidParameterValueException"); !strings.Contains(f.Message, "Already exists.") {
			t.Errorf("says %q", f.Message)
		}
		v.fine(add("two", "111111111111"))
		v.fine(remove("one"))
		if p := v.attribute(q, "Policy"); strings.Contains(p, `"one"`) || !strings.Contains(p, `"AWS":"arn:aws:iam::111111111111:root"`) {
			t.Errorf("the policy is %s", p)
		}
		v.fine(remove("two"))
		out, err := v.s.GetQueueAttributes(v.ctx, queue.GetAttributesInput{QueueUrl: q, AttributeNames: []string{"Policy"}})
		v.fine(err)
		if _, there := out.Attributes["Policy"]; there {
			t.Errorf("the policy is %v", out.Attributes)
		}
		v.refused(remove("two"), "InvalidParameterValueException")
		v.refused(add("x", "1"), "InvalidParameterValueException")
		v.refused(v.s.AddPermission(v.ctx, queue.AddPermissionInput{QueueUrl: q, Label: "x", AWSAccountIds: []string{"111111111111"}, Actions: []string{"CreateQueue"}}), "InvalidParameterValueException")
	})
}

func TestReport19DeleteQueue(t *testing.T) {
	bubble(t, func(v *env) {
		for _, q := range []string{v.create("a"), v.create("a.fifo")} {
			with := []func(*queue.SendInput){}
			if strings.HasSuffix(q, ".fifo") {
				with = append(with, group("g"), dedup("d"))
			}
			v.send(q, "old", with...)
			old := v.one(q, "old")
			v.fine(v.s.DeleteQueue(v.ctx, queue.NamedInput{QueueUrl: q}))
			_, err := v.s.GetQueueUrl(v.ctx, queue.GetQueueUrlInput{QueueName: q})
			v.refused(err, "QueueDoesNotExist")
			_, err = v.trySend(q, "x", with...)
			v.refused(err, "QueueDoesNotExist")
			again := queue.CreateQueueInput{QueueName: q}
			if len(with) > 0 {
				again.Attributes = attrs("FifoQueue", "true")
			}
			_, err = v.s.CreateQueue(v.ctx, again)
			v.refused(err, "QueueDeletedRecently")
			time.Sleep(time.Minute)
			_, err = v.s.CreateQueue(v.ctx, again)
			v.fine(err)
			v.bodies(v.receive(q))
			v.refused(v.remove(q, old), "ReceiptHandleIsInvalid")
			v.send(q, "new", with...) // with the dedup id of the former queue
			v.one(q, "new")
		}
	})
}

func TestDeletedQueuesThatWereNeverUsedLeaveNothing(t *testing.T) {
	bubble(t, func(v *env) {
		v.create("used")
		v.send("used", "x")
		for _, q := range []string{v.create("a"), "used"} {
			v.fine(v.s.DeleteQueue(v.ctx, queue.NamedInput{QueueUrl: q}))
			_, err := v.s.CreateQueue(v.ctx, queue.CreateQueueInput{QueueName: q})
			v.refused(err, "QueueDeletedRecently")
		}
		time.Sleep(time.Minute + time.Second)
		docs, _ := engine.As[engine.Documents](v.e)
		all, err := docs.Documents(v.ctx, "sqs.queue", "", 10)
		v.fine(err)
		if len(all) != 1 || all[0].Key != "used" {
			t.Errorf("left is %v", all)
		}
		_, err = v.trySend("used", "x")
		v.refused(err, "QueueDoesNotExist")
		v.create("a")
	})
}

func TestPurgeOncePerMinute(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		purge := func() error { return v.s.PurgeQueue(v.ctx, queue.NamedInput{QueueUrl: q}) }
		v.send(q, "x")
		v.send(q, "later", delay(10))
		v.fine(purge())
		v.bodies(v.receive(q, wait(20)))
		f := v.refused(purge(), "PurgeQueueInProgress")
		if code, status, _ := f.Describe(); status != 403 || code != "AWS.SimpleQueueService.PurgeQueueInProgress" {
			t.Errorf("%s with %d", code, status)
		}
		time.Sleep(time.Minute)
		v.fine(purge())
	})
}

func TestListQueues(t *testing.T) {
	bubble(t, func(v *env) {
		for i := range 25 {
			v.create(fmt.Sprintf("a-%02d", i))
		}
		v.create("b")
		three := 10
		var all []string
		in := queue.ListQueuesInput{QueueNamePrefix: "a-", MaxResults: &three}
		for pages := 0; ; pages++ {
			out, err := v.s.ListQueues(v.ctx, in)
			v.fine(err)
			all = append(all, out.QueueUrls...)
			if in.NextToken = out.NextToken; in.NextToken == "" {
				if pages != 2 {
					t.Errorf("%d pages", pages+1)
				}
				break
			}
		}
		if len(all) != 25 || all[0] != "a-00" || all[24] != "a-24" {
			t.Errorf("got %v", all)
		}
		zero := 0
		_, err := v.s.ListQueues(v.ctx, queue.ListQueuesInput{MaxResults: &zero})
		v.refused(err, "InvalidParameterValueException")
		_, err = v.s.ListQueues(v.ctx, queue.ListQueuesInput{NextToken: "?"})
		v.refused(err, "InvalidParameterValueException")
	})
}

func TestTags(t *testing.T) {
	bubble(t, func(v *env) {
		_, err := v.s.CreateQueue(v.ctx, queue.CreateQueueInput{QueueName: "a", Tags: attrs("k", "v", "tag3", "")})
		v.fine(err)
		v.fine(v.s.TagQueue(v.ctx, queue.TagInput{QueueUrl: "a", Tags: attrs("k", "w", "l", "x")}))
		v.fine(v.s.UntagQueue(v.ctx, queue.UntagInput{QueueUrl: "a", TagKeys: []string{"l", "none"}}))
		out, err := v.s.ListQueueTags(v.ctx, queue.NamedInput{QueueUrl: "a"})
		v.fine(err)
		if !maps.Equal(out.Tags, attrs("k", "w", "tag3", "")) {
			t.Errorf("got %v", out.Tags)
		}
		many := map[string]string{}
		for i := range 50 {
			many[fmt.Sprint(i)] = ""
		}
		v.refused(v.s.TagQueue(v.ctx, queue.TagInput{QueueUrl: "a", Tags: many}), "InvalidParameterValueException")
		v.refused(v.s.TagQueue(v.ctx, queue.TagInput{QueueUrl: "a", Tags: attrs("aws:x", "")}), "InvalidParameterValueException")
		v.refused(v.s.TagQueue(v.ctx, queue.TagInput{QueueUrl: "none", Tags: many}), "QueueDoesNotExist")
	})
}
