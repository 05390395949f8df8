package config

import "strings"

// finish fills queues from the default policy where they say nothing, and checks
// what no single value can show.
func (s *Settings) finish() Problems {
	var problems Problems
	for _, one := range s.all {
		name, field, ok := queueKey(one.key)
		if !ok {
			continue
		}
		if base, _ := s.find("queues." + DefaultQueue + "." + field); one.from == (Source{}) && one != base {
			problems = append(problems, one.take(base.value.get(), base.from)...)
		}
		s.Queues[name] = *one.queue
	}
	problems = append(problems, s.finishTasks()...)
	problems = append(problems, s.finishRules()...)
	problems = append(problems, s.finishSQS()...)
	problems = append(problems, s.finishRedis()...)
	problems = append(problems, s.finishPostgres()...)
	problems = append(problems, s.finishEncryption()...)
	if v := s.Server; (v.TLSCert == "") != (v.TLSKey == "") || v.TLSClientCA != "" && v.TLSCert == "" {
		one, _ := s.find("server.tlsCert")
		problems = append(problems, Problem{one.from, one.key, "goes together with tlsKey: allowed are both, or neither; tlsClientCA needs them"})
	}
	if in := s.Ingest; in.MaxEvent > in.MaxDecoded {
		one, _ := s.find("ingest.maxEvent")
		problems = append(problems, Problem{one.from, one.key, "is larger than ingest.maxDecoded; no request could carry such an event"})
	}
	if keep := s.Sink.Retention; keep > 0 && keep < day {
		one, _ := s.find("sink.retention")
		problems = append(problems, Problem{one.from, one.key, "is too short; allowed: 0, or 1d and more, since events leave by the day"})
	}
	for _, one := range s.all {
		name, field, _ := queueKey(one.key)
		switch q := s.Queues[name]; {
		case field == "backoff" && q.Backoff > q.BackoffMax:
			problems = append(problems, Problem{one.from, one.key, "is longer than backoffMax of the same queue"})
		case field == "concurrencyMin" && q.ConcurrencyMin > q.ConcurrencyMax:
			problems = append(problems, Problem{one.from, one.key, "is more than concurrencyMax of the same queue"})
		case field == "deliveries" && q.Deliveries != 0 && q.Deliveries < q.Attempts:
			problems = append(problems, Problem{one.from, one.key, "is less than attempts of the same queue; each attempt is a hand-out"})
		}
	}
	return problems
}

// finishTasks copies what users named into its place, and checks what no single
// value can show.
func (s *Settings) finishTasks() Problems {
	var problems Problems
	for _, one := range s.all {
		switch {
		case one.handler != nil:
			kind, field, _ := splitNamed(groupOf("handlers"), one.key)
			s.Handlers[kind] = *one.handler
			if h := one.handler; field == "command" && (len(h.Command) > 0) == (h.URL != "") {
				problems = append(problems, Problem{s.placeOf("handlers." + kind), "handlers." + kind, "needs one of command and url"})
			}
		case one.report != nil:
			name, field, _ := splitNamed(groupOf("reports"), one.key)
			s.Reports[name] = *one.report
			if field == "query" && one.report.Query == "" {
				problems = append(problems, Problem{s.placeOf("reports." + name), "reports." + name, "needs a query"})
			}
		}
	}
	return problems
}

// placeOf is where the first setting of a group was given.
func (s *Settings) placeOf(group string) Source {
	for _, one := range s.all {
		if strings.HasPrefix(one.key, group+".") && one.from != (Source{}) {
			return one.from
		}
	}
	return Source{}
}
