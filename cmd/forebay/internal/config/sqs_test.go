package config

import (
	"slices"
	"strings"
	"testing"
)

func loadEnv(env map[string]string) (*Settings, error) {
	return Load(Sources{File: "testdata/empty.yaml", Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
}

func TestRolesNeedASharedQueue(t *testing.T) {
	for _, c := range []struct {
		roles, url string
		problem    string
	}{
		{"", "", ""},
		{"worker,ingest,console,api", "", ""},
		{"worker", "", "one process"},
		{"worker", "https://sqs.eu-west-1.amazonaws.com/123456789012/events", ""},
		{"[\"ingest\", \"api\"]", "https://sqs.eu-west-1.amazonaws.com/123456789012/events", ""},
		{"cook", "https://sqs.eu-west-1.amazonaws.com/123456789012/events", `"cook" is no role`},
		{",", "", "is empty"},
	} {
		s, err := loadEnv(map[string]string{"FOREBAY_SERVER_ROLES": c.roles, "AWS_SQS_QUEUE_URL": c.url})
		if c.problem == "" {
			if err != nil {
				t.Errorf("roles %q: %v", c.roles, err)
				continue
			}
			if c.roles == "worker" && (s.Server.Whole() || !s.Server.Has(RoleWorker) || s.Server.Has(RoleIngest)) {
				t.Errorf("roles %q: %v", c.roles, s.Server.Roles)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.problem) || !strings.Contains(err.Error(), "server.roles") {
			t.Errorf("roles %q: %v, want a problem with %q", c.roles, err, c.problem)
		}
	}
}

func TestQueuesOfTheSettingsFile(t *testing.T) {
	s, err := loadEnv(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.SQSQueues) != 0 || s.SQSAPI.Listen != DefaultSQSListen || s.Given("sqsApi.listen") {
		t.Errorf("defaults: %v, %q", s.SQSQueues, s.SQSAPI.Listen)
	}
	s, err = Load(Sources{File: "testdata/empty.yaml", Flags: []Flag{
		{Name: "--set", Key: "sqsQueues.orders.attributes", Value: "FifoQueue=true VisibilityTimeout=60"},
		{Name: "--sqs-listen", Key: "sqsApi.listen", Value: Off},
	}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.SQSQueues["orders"].AttributeMap()
	if err != nil || all["VisibilityTimeout"] != "60" || all["FifoQueue"] != "true" {
		t.Errorf("attributes %v, %v", all, err)
	}
	if s.SQSAPI.Listen != Off || !s.Given("sqsApi.listen") {
		t.Errorf("listen is %q", s.SQSAPI.Listen)
	}
	if !slices.Equal(s.Server.Roles, Roles) {
		t.Errorf("roles are %v", s.Server.Roles)
	}
}

func TestJobsOverSQS(t *testing.T) {
	const url = "https://sqs.eu-west-1.amazonaws.com/123456789012/"
	s, err := Load(Sources{Flags: []Flag{{Key: "queues.mail.sqs", Value: url + "mail"}, {Key: "queues.other.attempts", Value: "3"}}})
	if err != nil {
		t.Fatal(err)
	}
	if all := s.SQSJobs(); len(all) != 1 || all["mail"] != url+"mail" {
		t.Errorf("got %v", all)
	}
	for want, flags := range map[string][]Flag{
		"name that":           {{Key: "queues.default.sqs", Value: url + "mail"}},
		"events are no jobs":  {{Key: "queues.events.sqs", Value: url + "mail"}},
		"names no queue":      {{Key: "queues.mail.sqs", Value: "https://sqs.eu-west-1.amazonaws.com"}},
		"a standard one":      {{Key: "queues.mail.sqs", Value: url + "mail.fifo"}},
		"each needs its own":  {{Key: "queues.mail.sqs", Value: url + "a"}, {Key: "queues.more.sqs", Value: url + "a"}},
		"the queue of sqs.ur": {{Key: "queues.mail.sqs", Value: url + "a"}, {Key: "sqs.url", Value: url + "a"}},
	} {
		if _, err := Load(Sources{Flags: flags}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", flags, err, want)
		}
	}
}
