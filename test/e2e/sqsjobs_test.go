//go:build e2e && linux

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// counting is a target of pushes that counts them.
type counting struct{ n atomic.Int64 }

func (c *counting) ServeHTTP(http.ResponseWriter, *http.Request) { c.n.Add(1) }

func (s *server) tellsThatSQSIsAway() {
	s.t.Helper()
	var body string
	if !eventually(s.t, 20*time.Second, func() bool {
		_, body, _ = get(s.t.Context(), s.url+"/readyz")
		return strings.Contains(body, `"name":"jobs over sqs","ok":false,"optional":true`)
	}) {
		s.t.Errorf("/readyz does not tell that SQS is away: %s", body)
	}
}

// A queue of jobs runs over the SQS of another server. The server with the rows is killed
// while it works, SQS is killed and comes back, somebody else sends with an SDK; all jobs
// are done, none of those that had been completed runs again, and no notice waits.
func TestJobsOverSQS(t *testing.T) {
	const n = 300
	cloud := sqsServer(t)
	c := cloud.sqsClient()
	url := cloud.makeQueue(c, "work", map[string]string{"VisibilityTimeout": "5"})
	ran := &counting{}
	web := httptest.NewServer(ran)
	defer web.Close()
	s := newServer(t, cloud.awsEnv()...)
	for _, one := range []string{"queues.work.sqs=" + url, "queues.work.lease=5s", "handlers.touch.queue=work", "handlers.touch.url=" + web.URL, "webhooks.private=true"} {
		s.args = append(s.args, "--set", one)
	}
	s.start()
	add := func(id string, options map[string]any) {
		t.Helper()
		in := map[string]any{"name": "touch", "queue": "work", "id": id, "data": id}
		for name, value := range options {
			in[name] = value
		}
		s.must(http.StatusAccepted, "POST", "/api/jobs", in, nil)
	}
	far := time.Now().Add(time.Hour).Format(time.RFC3339)
	add("far", map[string]any{"runAt": far})
	s.must(http.StatusOK, "POST", "/api/jobs/far/cancel", nil, nil)
	for i := range n {
		add(fmt.Sprint("j", i), nil)
		switch i {
		case n / 3:
			s.kill()
			s.start()
		case n / 2:
			cloud.kill()
		case 2 * n / 3:
			s.tellsThatSQSIsAway()
			cloud.start()
		}
	}
	_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(`"hello"`), MessageAttributes: map[string]sqstypes.MessageAttributeValue{
		"Forebay.Kind": {DataType: aws.String("String"), StringValue: aws.String("touch")}}})
	if err != nil {
		t.Fatal(err)
	}
	completed := func() int { return len(s.list("queue:work state:completed")) }
	if !eventually(t, 90*time.Second, func() bool { return completed() == n+1 }) {
		t.Fatalf("%d of %d jobs are completed", completed(), n+1)
	}
	before := ran.n.Load()
	s.kill()
	s.start()
	left := func() string { // but for what the killed one held, which goes when its lease ends
		out, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll}})
		if err != nil {
			t.Fatal(err)
		}
		return out.Attributes["ApproximateNumberOfMessages"]
	}
	if !eventually(t, 60*time.Second, func() bool { return left() == "0" }) {
		t.Errorf("%s notices are left", left())
	}
	if after := ran.n.Load(); after != before {
		t.Errorf("%d jobs that were completed ran again", after-before)
	}
	t.Logf("%d jobs, %d runs", n+1, before)
}
