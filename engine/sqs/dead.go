package sqs

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
)

// bury sends a copy of what is dead, with its cause, to the queue that the redrive
// policy names. The message itself is deleted after that: there may be two for a
// moment, never none.
func (s *settling) bury() {
	copies := make(map[string][]int) // by the URL of their queue
	for i, one := range s.ss {
		l := s.claimed[i]
		if l == nil || one.Verdict != forebay.Dead {
			continue
		}
		url, err := s.e.deadLetters(s.ctx, l.q)
		if err != nil {
			s.refuse(i, err)
			continue
		}
		copies[url] = append(copies[url], i)
	}
	for url, all := range copies {
		for len(all) > 0 {
			n, size := 0, 0
			var entries []types.SendMessageBatchRequestEntry
			for n < min(len(all), maxBatch) {
				entry, bytes := s.copyOf(all[n], isFIFO(url))
				if n > 0 && size+bytes > maxBytes {
					break
				}
				entry.Id = new(strconv.Itoa(n))
				entries, size, n = append(entries, entry), size+bytes, n+1
			}
			for j, err := range s.e.sendCopies(s.ctx, url, entries) {
				if err != nil {
					s.refuse(all[j], err)
				}
			}
			all = all[n:]
		}
	}
}

func (e *Engine) sendCopies(ctx context.Context, url string, entries []types.SendMessageBatchRequestEntry) []error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	out, err := e.client.SendMessageBatch(ctx, &awssqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
	if err != nil {
		return e.unanswered("dead letter", len(entries), err)
	}
	var ok []*string
	for i := range out.Successful {
		ok = append(ok, out.Successful[i].Id)
	}
	return e.answers("dead letter", len(entries), ok, out.Failed)
}

// maxAttributes is how many SQS allows.
const maxAttributes = 10

// copyOf is a message as it was, and its cause where there is room for it.
func (s *settling) copyOf(i int, fifo bool) (types.SendMessageBatchRequestEntry, int) {
	l := s.claimed[i]
	attributes := maps.Clone(l.raw.MessageAttributes)
	if attributes == nil {
		attributes = make(map[string]types.MessageAttributeValue, 1)
	}
	delete(attributes, attrCause) // of an earlier death
	if len(attributes) < maxAttributes {
		set(attributes, attrCause, causeText(s.ss[i].Cause))
	}
	body := deref(l.raw.Body)
	if sizeOf(body, attributes) > maxBytes {
		delete(attributes, attrCause)
	}
	out := types.SendMessageBatchRequestEntry{MessageBody: &body, MessageAttributes: attributes}
	if group, ok := l.raw.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]; ok {
		out.MessageGroupId = &group
	}
	if fifo {
		out.MessageDeduplicationId = &l.messageID
	}
	return out, sizeOf(body, attributes)
}

// causeText is a cause as JSON, without its details if they are long.
func causeText(c forebay.Cause) string {
	const most = 8 << 10
	if text := asJSON(c); len(text) <= most && allowed(text) {
		return text
	}
	c.Detail = nil
	if len(c.Message) > most/2 {
		c.Message = strings.ToValidUTF8(c.Message[:most/2], "")
	}
	return asJSON(c)
}

// redrivePolicy is where SQS puts what was handed out too often.
type redrivePolicy struct {
	Target string `json:"deadLetterTargetArn"`
}

// deadLetters gives the URL of the queue for the dead letters of q.
func (e *Engine) deadLetters(ctx context.Context, q *queue) (string, error) {
	q.mu.Lock()
	url := q.dead
	q.mu.Unlock()
	if url != "" {
		return url, nil
	}
	a, err := e.attributes(ctx, q.url, types.QueueAttributeNameRedrivePolicy)
	if err != nil {
		return "", err
	}
	policy := parsePolicy(a)
	if policy.Target == "" {
		err := unsupported("", "queue %q of SQS has no redrive policy, so it keeps no dead letters", q.name)
		err.Hint = "give it a redrive policy, or keep dead letters in a local engine"
		return "", err
	}
	account, name := splitARN(policy.Target)
	url, err = e.urlOf(ctx, name, account)
	if err != nil {
		return "", err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead = url
	return url, nil
}

func parsePolicy(a map[string]string) (p redrivePolicy) {
	_ = json.Unmarshal([]byte(a[string(types.QueueAttributeNameRedrivePolicy)]), &p) // none, or not a policy
	return p
}

// splitARN reads arn:aws:sqs:<region>:<account>:<name>.
func splitARN(arn string) (account, name string) {
	parts := strings.Split(arn, ":")
	if len(parts) < 6 {
		return "", arn
	}
	return parts[4], parts[5]
}
