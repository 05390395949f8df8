package sqs_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqs"
)

// others is the AWS SDK as other programs use it.
func (ep *endpoint) others(t testing.TB) *awssqs.Client {
	settings, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return awssqs.NewFromConfig(settings, func(o *awssqs.Options) {
		o.HTTPClient, o.BaseEndpoint = ep.client, aws.String("http://sqs.test")
	})
}

// foreign sends a body as another program would.
func (s *stand) foreign(body string, attributes map[string]types.MessageAttributeValue) string {
	s.Helper()
	c := s.ep.others(s)
	url, err := c.GetQueueUrl(s.Context(), &awssqs.GetQueueUrlInput{QueueName: aws.String("q")})
	if err != nil {
		s.Fatal(err)
	}
	out, err := c.SendMessage(s.Context(), &awssqs.SendMessageInput{QueueUrl: url.QueueUrl, MessageBody: &body, MessageAttributes: attributes})
	if err != nil {
		s.Fatal(err)
	}
	return *out.MessageId
}

const (
	topic = "arn:aws:sns:us-east-1:1:orders"
	sns   = `{"Type":"Notification","MessageId":"sns-1","TopicArn":"` + topic + `","Subject":"hello","Message":"{\"a\":1}"}`
	s3    = `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put"}]}`
	test  = `{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}`
	event = `{"version":"0","id":"eb-1","detail-type":"OrderPlaced","source":"shop","detail":{"b":2}}`
)

func TestForeignMessages(t *testing.T) {
	all := sqs.Unwrap{SNS: true, Topics: []string{topic}, EventBridge: true, S3: true}
	for name, c := range map[string]struct {
		unwrap             sqs.Unwrap
		body               string
		id, kind, payload  string // id empty: that of SQS
		header, headerText string
	}{
		"as it is":                         {body: "hello <b>", payload: "hello <b>", header: "trace", headerText: "t1"},
		"an envelope stays closed":         {body: sns, payload: sns},
		"SNS":                              {unwrap: all, body: sns, id: "sns-1", payload: `{"a":1}`, header: "sns-topic", headerText: topic},
		"SNS of another topic":             {unwrap: sqs.Unwrap{SNS: true, Topics: []string{"arn:other"}}, body: sns, payload: sns},
		"EventBridge":                      {unwrap: all, body: event, id: "eb-1", kind: "OrderPlaced", payload: `{"b":2}`, header: "eventbridge-source", headerText: "shop"},
		"S3":                               {unwrap: all, body: s3, kind: "s3:ObjectCreated:Put", payload: s3},
		"S3's test event, where not asked": {body: test, payload: test},
		"no envelope":                      {unwrap: all, body: "plain", payload: "plain"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(cfg *sqs.Config) { cfg.Unwrap = map[string]sqs.Unwrap{"q": c.unwrap} }, func(s *stand) {
				s.take(1, 0) // makes the queue
				id := s.foreign(c.body, map[string]types.MessageAttributeValue{"trace": {DataType: aws.String("String"), StringValue: aws.String("t1")}})
				if c.id != "" {
					id = c.id
				}
				d := s.one(id)
				if d.Kind != c.kind || string(d.Payload) != c.payload || d.Headers[c.header] != c.headerText {
					t.Errorf("received %q, kind %q, headers %v", d.Payload, d.Kind, d.Headers)
				}
			})
		})
	}
}

func TestTestEventIsDropped(t *testing.T) {
	inBubble(t, func(cfg *sqs.Config) { cfg.Unwrap = map[string]sqs.Unwrap{"q": {S3: true, SNS: true}} }, func(s *stand) {
		s.take(1, 0)
		s.foreign(test, nil)
		if ds := s.take(1, 5*time.Second); len(ds) != 0 {
			t.Errorf("received %+v", ds)
		}
		if n := s.Counters(); n.TestEvents != 1 || n.Deleted != 1 {
			t.Errorf("counters are %+v", n)
		}
	})
}

func TestDeadLettersAndRedrive(t *testing.T) {
	inBubble(t, nil, func(s *stand) {
		s.put(message("a"), message("b"), message("c"))
		for _, d := range s.take(3, 0) {
			s.done(d, forebay.Dead)
		}
		time.Sleep(time.Second)
		c := s.ep.others(s)
		url, err := c.GetQueueUrl(s.Context(), &awssqs.GetQueueUrlInput{QueueName: aws.String("q-dead")})
		if err != nil {
			t.Fatal(err)
		}
		dead, err := c.ReceiveMessage(s.Context(), &awssqs.ReceiveMessageInput{QueueUrl: url.QueueUrl, MessageAttributeNames: []string{"All"}, VisibilityTimeout: 1})
		if err != nil || len(dead.Messages) != 1 || !strings.Contains(*dead.Messages[0].MessageAttributes["forebay.cause"].StringValue, `"message":"größe"`) {
			t.Fatalf("dead letters are %+v, %v", dead, err)
		}
		time.Sleep(2 * time.Second)
		if qs, err := s.Stats(s.Context(), "q"); err != nil || qs[0].Dead != 3 || qs[0].Waiting+qs[0].Active != 0 {
			t.Fatalf("stats are %+v, %v; want 3 dead", qs, err)
		}
		task, err := s.Redrive(s.Context(), "q", 1)
		if err != nil || task == "" {
			t.Fatalf("redrive gave %q, %v", task, err)
		}
		if _, err := s.Redrive(s.Context(), "q", 0); forebay.CodeOf(err) != forebay.CodeConflict {
			t.Errorf("a second redrive gave %v, want code conflict", err)
		}
		time.Sleep(time.Minute)
		tasks, err := s.Redrives(s.Context(), "q")
		if err != nil || len(tasks) != 1 || tasks[0].State != engine.RedriveCompleted || tasks[0].Moved != 3 {
			t.Fatalf("tasks are %+v, %v", tasks, err)
		}
		if _, err := s.CancelRedrive(s.Context(), "q", task); err == nil {
			t.Errorf("a task that has ended was cancelled")
		}
		got := map[string]bool{}
		for range 3 {
			d := s.take(1, time.Second)[0]
			got[d.ID] = true
			s.done(d, forebay.Ack)
		}
		if !got["a"] || !got["b"] || !got["c"] {
			t.Errorf("after the redrive came %v", got)
		}
	})
}

// bare makes a queue without a redrive policy, and gives its URL.
func (ep *endpoint) bare(t testing.TB) string {
	out, err := ep.others(t).CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: aws.String("bare")})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

func TestAuditAndNoRedrivePolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ep := newEndpoint(t)
		url := ep.bare(t)
		var log bytes.Buffer
		e := ep.open(t, func(c *sqs.Config) {
			c.Create, c.Queues, c.HandlerTimeout = false, map[string]string{"q": url}, time.Hour
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		s := &stand{T: t, Engine: e, ep: ep}
		synctest.Wait()
		found, err := e.Audit(t.Context())
		if err != nil || len(found) != 3 {
			t.Errorf("found %+v, %v", found, err)
		}
		for _, want := range []string{"no redrive policy", "below the handlers' timeout", "poll it short"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log at the start does not say %q: %s", want, log.String())
			}
		}
		s.put(message("a"))
		d := s.one("a")
		if err := s.settle(d, forebay.Dead); forebay.CodeOf(err) != forebay.CodeUnsupported {
			t.Errorf("dead without a redrive policy gave %v", err)
		}
		s.done(d, forebay.Ack) // its lease was left alone
		if res, err := e.Send(t.Context(), []forebay.Message{{ID: "x", Queue: "nobody"}}); err != nil || forebay.CodeOf(res[0].Err) != forebay.CodeNotFound {
			t.Errorf("send to a queue without a URL gave %+v, %v", res, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		ep.stop()
	})
}

func TestWrongSettings(t *testing.T) {
	t.Parallel()
	for what, cfg := range map[string]sqs.Config{
		"queues":             {},
		"not the URL":        {Queues: map[string]string{"q": "q"}},
		"queue name \"a b\"": {Queues: map[string]string{"a b": "https://sqs.eu-west-1.amazonaws.com/1/q"}},
		"below 0":            {Create: true, Polls: -1},
	} {
		if _, err := sqs.Open(t.Context(), cfg); forebay.CodeOf(err) != forebay.CodeInvalid || !strings.Contains(err.Error(), what) {
			t.Errorf("open gave %v, want code invalid and a word on %q", err, what)
		}
	}
}

// Requests are shared: under load a message takes a third of one.
func TestRequestsPerMessage(t *testing.T) {
	inBubble(t, nil, func(s *stand) {
		const total = 2000
		msgs := make([]forebay.Message, total)
		for i := range msgs {
			msgs[i] = message(fmt.Sprint("m", i))
		}
		s.put(msgs...)
		for left := total; left > 0; {
			ds := s.take(500, time.Second)
			ss := make([]forebay.Settlement, len(ds))
			for i, d := range ds {
				ss[i] = forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack}
			}
			if _, err := s.Settle(s.Context(), ss); err != nil {
				t.Fatal(err)
			}
			left -= len(ds)
		}
		n := s.Counters()
		t.Logf("%.3f requests per message: %+v", n.PerMessage(), n)
		if n.PerMessage() > 0.35 {
			t.Errorf("a message took %.3f requests", n.PerMessage())
		}
	})
}
