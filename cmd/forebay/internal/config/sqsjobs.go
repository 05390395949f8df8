package config

import (
	"net/url"
	"strings"

	"github.com/forebayhq/forebay/event"
)

// SQSJobs are the URLs of the queues whose jobs run over SQS, by name.
func (s *Settings) SQSJobs() map[string]string {
	all := map[string]string{}
	for name, q := range s.Queues {
		if q.SQS != "" {
			all[name] = q.SQS
		}
	}
	return all
}

// checkSQSJobs says what is wrong with them.
func (s *Settings) checkSQSJobs(add func(key, text string)) {
	taken := map[string]string{s.SQS.URL: "sqs.url"}
	for _, one := range s.all {
		name, field, ok := queueKey(one.key)
		if !ok || field != "sqs" || s.Queues[name].SQS == "" {
			continue
		}
		at := s.Queues[name].SQS
		u, err := url.Parse(at)
		switch {
		case one.from == (Source{}):
		case name == DefaultQueue:
			add(one.key, "one queue of SQS is for one queue here; name that: queues.<name>.sqs")
			return // the others have it from here
		case name == event.Queue:
			add(one.key, "events are no jobs; sqs.url (AWS_SQS_QUEUE_URL) is for them")
		case err != nil || strings.Trim(u.Path, "/") == "":
			add(one.key, "names no queue; a queue URL ends in /<account>/<queue>")
		case strings.HasSuffix(at, ".fifo"):
			add(one.key, "is a FIFO queue; a standard one is needed, and groups keep their order by their rows")
		case taken[at] != "":
			add(one.key, "is the queue of "+taken[at]+" too; each needs its own")
		}
		taken[at] = one.key
	}
}
