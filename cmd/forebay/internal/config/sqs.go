package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// SQS settings: the queue of AWS that events go through.
type SQS struct {
	URL       string
	Region    string
	Endpoint  string
	Unwrap    string
	Topics    []string
	OutboxMax int64
}

// SQSAPI settings: the endpoint that speaks SQS.
type SQSAPI struct {
	Listen    string // "host:port", or Off
	PublicURL string
	Account   string
	Region    string
	Limits    string
}

// SQSQueue is a queue that is made for SQS clients at the start.
type SQSQueue struct {
	Attributes []string // Name=value
}

// Off is the address of a listener that is not wanted.
const Off = "off"

// DefaultSQSListen is where the endpoint listens unless a user says otherwise.
const DefaultSQSListen = "127.0.0.1:9324"

// The parts of the program that a user can choose with server.roles.
const (
	RoleIngest  = "ingest"
	RoleAPI     = "api"
	RoleWorker  = "worker"
	RoleConsole = "console"
)

// Roles are all of them.
var Roles = []string{RoleIngest, RoleAPI, RoleWorker, RoleConsole}

// Given tells whether a user said something about a setting.
func (s *Settings) Given(key string) bool {
	one, _ := s.find(key)
	return one != nil && one.from != (Source{})
}

// Has tells whether the server plays a role.
func (s *Server) Has(role string) bool { return slices.Contains(s.Roles, role) }

// Whole tells whether the server plays all roles.
func (s *Server) Whole() bool {
	return !slices.ContainsFunc(Roles, func(role string) bool { return !s.Has(role) })
}

func (s *Settings) sqsTable() []*setting {
	v, a := &s.SQS, &s.SQSAPI
	return []*setting{
		{key: "sqs.url", env: "AWS_SQS_QUEUE_URL", value: webURL(&v.URL),
			doc: "The AWS SQS queue that events go through, between any number of servers. Empty: the queue of this server. Credentials come from the AWS SDK's own chain."},
		{key: "sqs.region", env: "AWS_REGION", value: text(&v.Region, "", 64),
			doc: "Its region. Empty: as its address, or the AWS SDK's own settings, say."},
		{key: "sqs.endpoint", env: "AWS_ENDPOINT_URL_SQS", value: webURL(&v.Endpoint),
			doc: "Where SQS is asked, if not where its region says: another Forebay, or an interface endpoint."},
		{key: "sqs.unwrap", value: choice(&v.Unwrap, "none", "sns", "eventbridge", "s3"),
			doc: "Take events out of the envelope that this service puts around them."},
		{key: "sqs.topics", value: words(&v.Topics),
			doc: "The ARNs of the SNS topics whose envelopes are opened; others stay as they are."},
		{key: "sqs.outboxMax", value: size(&v.OutboxMax, 4*gib, 1*mib, 1000*gib),
			doc: "The most bytes of events that are kept here while SQS is out of reach (503 beyond)."},

		{key: "sqsApi.listen", value: addressOrOff(&a.Listen, DefaultSQSListen),
			doc: "Where AWS SDKs reach the queues of this server, in the words of SQS. The default gives way when the port is taken."},
		{key: "sqsApi.publicUrl", value: webURL(&a.PublicURL),
			doc: "How queue URLs begin. Empty: as the caller has reached the server."},
		{key: "sqsApi.account", value: account(&a.Account, "000000000000"),
			doc: "The account number in ARNs and queue URLs."},
		{key: "sqsApi.region", value: text(&a.Region, "us-east-1", 64),
			doc: "The region in ARNs. Signatures of any region are good."},
		{key: "sqsApi.limits", value: choice(&a.Limits, "aws", "wide"),
			doc: "With aws, what AWS refuses is refused; with wide, batches, delays and waits may be larger."},
	}
}

func sqsQueueTable(name string) []*setting {
	q := &SQSQueue{}
	return []*setting{
		{key: "sqsQueues." + name + ".attributes", sqsQueue: q, value: words(&q.Attributes),
			doc: "Attributes of the queue as in CreateQueue, each as Name=value. With FifoQueue=true its name ends in .fifo."},
	}
}

// AttributeMap gives the attributes of a queue by name.
func (q SQSQueue) AttributeMap() (map[string]string, error) {
	all := make(map[string]string, len(q.Attributes))
	for _, one := range q.Attributes {
		name, v, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not Name=value", one)
		}
		all[name] = v
	}
	return all, nil
}

func addressOrOff(p *string, def string) value {
	v := address(p, def)
	set := v.set
	v.allowed += ", or " + Off
	v.set = func(s string) error {
		if s == Off {
			*p = s
			return nil
		}
		return set(s)
	}
	return v
}

func account(p *string, def string) value {
	*p = def
	return value{
		get:     func() string { return *p },
		allowed: "12 digits",
		set: func(s string) error {
			if len(s) != 12 || strings.Trim(s, "0123456789") != "" {
				return fmt.Errorf("%q is no account number", s)
			}
			*p = s
			return nil
		},
	}
}

// roles takes some of the roles, separated by commas or spaces, or as a list.
func roles(p *[]string) value {
	*p = Roles
	return value{
		get:     func() string { return strings.Join(*p, ",") },
		allowed: "some of " + strings.Join(Roles, ", "),
		list:    true,
		set: func(s string) error {
			var some []string
			if strings.HasPrefix(s, "[") {
				if err := json.Unmarshal([]byte(s), &some); err != nil {
					return fmt.Errorf("is not a list")
				}
			} else {
				some = strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
			}
			if len(some) == 0 {
				return fmt.Errorf("is empty")
			}
			for _, one := range some {
				if !slices.Contains(Roles, one) {
					return fmt.Errorf("%q is no role", one)
				}
			}
			*p = some
			return nil
		},
	}
}

// finishSQS checks what no single value can show.
func (s *Settings) finishSQS() Problems {
	var problems Problems
	add := func(key, text string) {
		one, _ := s.find(key)
		problems = append(problems, Problem{one.from, key, text})
	}
	if !s.Server.Whole() && s.SQS.URL == "" && !s.JobsAway() {
		add("server.roles", "the queue of this server is one process: ingest, api, worker and console run together; set sqs.url (AWS_SQS_QUEUE_URL) redis.url (REDIS_URL) or postgres.url (FOREBAY_POSTGRES_URL) to run them apart")
	}
	if s.SQS.URL != "" {
		if u, err := url.Parse(s.SQS.URL); err != nil || strings.Trim(u.Path, "/") == "" {
			add("sqs.url", "names no queue; a queue URL ends in /<account>/<queue>")
		}
	}
	if len(s.SQS.Topics) > 0 && s.SQS.Unwrap == "none" {
		add("sqs.topics", "has no meaning unless sqs.unwrap is set")
	}
	s.checkSQSJobs(add)
	for _, one := range s.all {
		if one.sqsQueue == nil {
			continue
		}
		name, _, _ := splitNamed(groupOf("sqsQueues"), one.key)
		s.SQSQueues[name] = *one.sqsQueue
		if _, err := one.sqsQueue.AttributeMap(); err != nil {
			add(one.key, err.Error())
		}
	}
	return problems
}
