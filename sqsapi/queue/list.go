package queue

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/forebayhq/forebay/engine"
)

// ListQueues names queues, those of a prefix, by name.
func (s *Service) ListQueues(ctx context.Context, in ListQueuesInput) (ListQueuesOutput, error) {
	most, after, err := page(in.MaxResults, in.NextToken, "MaxResults", maxListed)
	if err != nil {
		return ListQueuesOutput{}, err
	}
	names, err := s.names(ctx, func(string, *record) bool { return true })
	if err != nil {
		return ListQueuesOutput{}, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, in.QueueNamePrefix) })
	some, next := cutPage(names, after, most, in.MaxResults != nil)
	return ListQueuesOutput{QueueUrls: some, NextToken: next}, nil
}

// ListDeadLetterSourceQueues names the queues whose dead letter queue one is.
func (s *Service) ListDeadLetterSourceQueues(ctx context.Context, in ListSourcesInput) (ListSourcesOutput, error) {
	out := ListSourcesOutput{QueueUrls: []string{}}
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return out, err
	}
	most, after, err := page(in.MaxResults, in.NextToken, "MaxResults", maxListed)
	if err != nil {
		return out, err
	}
	names, err := s.sources(ctx, q.name)
	if err != nil {
		return out, err
	}
	some, next := cutPage(names, after, most, in.MaxResults != nil)
	out.QueueUrls, out.NextToken = append(out.QueueUrls, some...), next
	return out, nil
}

// sources names the queues whose dead letter queue one is.
func (s *Service) sources(ctx context.Context, name string) ([]string, error) {
	return s.names(ctx, func(_ string, r *record) bool {
		p, err := parseRedrive(r.Attributes["RedrivePolicy"])
		return err == nil && p != nil && p.Target == s.arn(name)
	})
}

// names gives the names of queues that fit, in order: of those with a record, and of
// those that only the engine knows.
func (s *Service) names(ctx context.Context, fits func(name string, r *record) bool) ([]string, error) {
	var names []string
	seen := map[string]bool{}
	for after := ""; ; {
		docs, err := s.docs.Documents(ctx, queueDocs, after, engine.MaxDocuments)
		if err != nil {
			return nil, s.failed(ctx, err)
		}
		if len(docs) == 0 {
			break
		}
		for i := range docs {
			after = docs[i].Key
			seen[after] = true
			var r record
			if err := json.Unmarshal(docs[i].Value, &r); err != nil {
				s.cfg.Logger.Error("the record of an SQS queue does not parse", "queue", after, "error", err)
				continue
			}
			if r.Deleted == 0 && fits(after, &r) {
				names = append(names, after)
			}
		}
	}
	stats, err := s.engine.Stats(ctx)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	for i := range stats {
		if name := stats[i].Queue; !seen[name] && checkName(name) == nil && fits(name, &record{}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// page reads what a listing says of its pages.
func page(most *int, token, parameter string, bound int) (n int, after string, err error) {
	n = bound
	if most != nil {
		if n = *most; n < 1 || n > bound {
			return 0, "", badValue(parameter, n, "Must be between 1 and "+itoa(bound)+", if provided.")
		}
	}
	raw, e := base64.RawURLEncoding.DecodeString(token)
	if e != nil {
		return 0, "", badValue("NextToken", token, "Invalid or expired token.")
	}
	return n, string(raw), nil
}

// cutPage gives the names after one, and a token for the rest. AWS gives a token only
// to those who said how many they want.
func cutPage(names []string, after string, most int, paged bool) ([]string, string) {
	at, found := slices.BinarySearch(names, after)
	if found {
		at++
	}
	names = names[at:]
	if len(names) <= most {
		return names, ""
	}
	names = names[:most]
	if !paged {
		return names, ""
	}
	return names, base64.RawURLEncoding.EncodeToString([]byte(names[most-1]))
}
