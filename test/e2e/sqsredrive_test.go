//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	shape "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Dead letters of the shared queue go back by a command, which needs no server beside
// the queue and tells what became of it.
func TestRedriveByCommand(t *testing.T) {
	queue := sqsServer(t)
	c := queue.sqsClient()
	dead := queue.makeQueue(c, "app-events-dead", nil)
	arn, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &dead, AttributeNames: []shape.QueueAttributeName{"QueueArn"}})
	if err != nil {
		t.Fatal(err)
	}
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":3}`, arn.Attributes["QueueArn"])
	url := queue.makeQueue(c, "app-events", map[string]string{"RedrivePolicy": policy})
	for i := range 12 {
		if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &dead, MessageBody: aws.String(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), binary, append([]string{"sqs"}, args...)...)
		cmd.Env = append(append(cleanEnv(), queue.awsEnv()...), "AWS_SQS_QUEUE_URL="+url)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := command("redrive", "--rate", "501"); err == nil || !strings.Contains(out, "500 are allowed") {
		t.Errorf("a rate beyond the bound: %v: %s", err, out)
	}
	if out, err := command("redrive", "--rate", "100"); err != nil || out != "completed, 12 messages moved\n" {
		t.Errorf("redrive: %v: %s", err, out)
	}
	out, err := command("redrives", "--json")
	var tasks []struct {
		State string `json:"state"`
		Moved int    `json:"moved"`
		Rate  int    `json:"rate"`
	}
	d := json.NewDecoder(strings.NewReader(out))
	if err != nil || d.Decode(&tasks) != nil || len(tasks) != 1 || tasks[0].State != "completed" || tasks[0].Moved != 12 || tasks[0].Rate != 100 {
		t.Errorf("redrives: %v: %s", err, out)
	}
	if strings.Contains(out, `"State"`) {
		t.Errorf("names are not as everywhere: %s", out)
	}
	if out, err := command("cancel", "nothing"); err == nil {
		t.Errorf("a task that is none was cancelled: %s", out)
	}
	left, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []shape.QueueAttributeName{"All"}})
	if err != nil || left.Attributes["ApproximateNumberOfMessages"] != "12" {
		t.Errorf("the queue has %v, %v", left.Attributes, err)
	}
}
