package queue

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// asked is a ReceiveInput that was checked.
type asked struct {
	max        int
	wait       time.Duration
	visibility time.Duration
	system     []string
	attributes []string
	attempt    string
}

func (s *Service) checkReceive(q *queue, in *ReceiveInput) (a asked, err error) {
	a = asked{max: 1, wait: q.wait, visibility: q.visibility, attributes: in.MessageAttributeNames,
		system: slices.Concat(in.AttributeNames, in.SystemAttributeNames), attempt: in.ReceiveRequestAttemptId}
	if n := in.MaxNumberOfMessages; n != nil {
		if a.max = *n; a.max < 1 || a.max > s.limits.receive {
			return a, badValue("MaxNumberOfMessages", a.max, "Must be between 1 and "+itoa(s.limits.receive)+", if provided.")
		}
	}
	if n := in.WaitTimeSeconds; n != nil {
		if *n < 0 || *n > s.limits.wait {
			return a, badValue("WaitTimeSeconds", *n, "Must be >= 0 and <= "+itoa(s.limits.wait)+", if provided.")
		}
		a.wait = time.Duration(*n) * time.Second
	}
	if n := in.VisibilityTimeout; n != nil {
		if *n < 0 || *n > maxVisibility {
			return a, badVisibility(*n)
		}
		a.visibility = time.Duration(*n) * time.Second
	}
	for _, name := range a.system {
		if !soundSystem(name) {
			return a, fault("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	if a.attempt != "" {
		if !q.fifo {
			return a, badValue("ReceiveRequestAttemptId", a.attempt, "The request include parameter that is not valid for this queue type.")
		}
		err = checkToken("ReceiveRequestAttemptId", a.attempt)
	}
	return a, err
}

func badVisibility(n int) error {
	return badValue("VisibilityTimeout", n, "Must be >= 0 and <= "+itoa(maxVisibility)+", if provided.")
}

// ReceiveMessage hands out messages. It waits until there is one, for as long as the
// caller, or else the queue, says.
func (s *Service) ReceiveMessage(ctx context.Context, in ReceiveInput) (ReceiveOutput, error) {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return ReceiveOutput{}, err
	}
	a, err := s.checkReceive(q, &in)
	if err != nil {
		return ReceiveOutput{}, err
	}
	ds, at, err := s.hand(ctx, q, &a)
	if err != nil {
		return ReceiveOutput{}, err
	}
	return ReceiveOutput{Messages: s.shown(q, &a, ds, at)}, nil
}

// shown makes what the caller sees of messages that were received at a time.
func (s *Service) shown(q *queue, a *asked, ds []forebay.Delivery, at time.Time) []Message {
	now, sign := s.cfg.Now(), q.live.sign
	out := make([]Message, len(ds))
	s.firsts.see(ds, now)
	for i := range ds {
		d := &ds[i]
		body, attributes := unpack(&d.Message)
		body, attributes = translated(&d.Message, body, attributes)
		attributes = wanted(attributes, a.attributes)
		out[i] = Message{
			MessageId: messageID(&d.Message), ReceiptHandle: sign.handle(d.Receipt, at), Body: string(body), MD5OfBody: hexMD5(body),
			MessageAttributes: attributes, MD5OfAttributes: attributesMD5(attributes), Attributes: s.systemOf(q, d, a.system, now),
		}
	}
	return out
}

func messageID(m *forebay.Message) string {
	if id := m.Headers[headID]; id != "" {
		return id
	}
	id, _ := splitID(m.ID)
	return id
}

// wanted are the attributes that a caller names: by name, by prefix.*, or all.
func wanted(attributes map[string]Attribute, names []string) map[string]Attribute {
	if len(attributes) == 0 || len(names) == 0 {
		return nil
	}
	if slices.Contains(names, "All") {
		return attributes
	}
	some := map[string]Attribute{}
	for name, a := range attributes {
		if slices.ContainsFunc(names, func(n string) bool {
			prefix, is := strings.CutSuffix(n, ".*")
			return n == "*" || n == name || is && (prefix == "" || strings.HasPrefix(name, prefix))
		}) {
			some[name] = a
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some
}

func systemNames() []string {
	return []string{"SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp",
		"SequenceNumber", "MessageDeduplicationId", "MessageGroupId", traceAttribute, "DeadLetterQueueSourceArn"}
}

func soundSystem(name string) bool {
	return name == "All" || slices.Contains(systemNames(), name)
}

// systemOf gives the system attributes that a caller names.
func (s *Service) systemOf(q *queue, d *forebay.Delivery, names []string, now time.Time) map[string]string {
	if len(names) == 0 {
		return nil
	}
	if slices.Contains(names, "All") {
		names = systemNames()
	}
	out := make(map[string]string, len(names))
	for _, name := range names {
		if value := s.system(q, d, name, now); value != "" {
			out[name] = value
		}
	}
	return out
}

func (s *Service) system(q *queue, d *forebay.Delivery, name string, now time.Time) string {
	switch name {
	case "SenderId":
		if sender := d.Headers[headSender]; sender != "" {
			return sender
		}
		return s.cfg.Account
	case "SentTimestamp":
		return strconv.FormatInt(sentAt(d).UnixMilli(), 10)
	case "ApproximateReceiveCount":
		return itoa(d.Deliveries + countBefore(d))
	case "ApproximateFirstReceiveTimestamp":
		return strconv.FormatInt(s.firsts.of(d.ID, now).UnixMilli(), 10)
	case "SequenceNumber":
		if _, number := splitID(d.ID); q.fifo {
			return number
		}
	case "MessageDeduplicationId":
		return d.Headers[headDedup]
	case "MessageGroupId":
		if q.fifo {
			return d.Group
		}
		return d.LimitKey
	case traceAttribute:
		return d.Headers[headTrace]
	case "DeadLetterQueueSourceArn":
		if from := d.Headers[headFrom]; from != "" {
			return s.arn(from)
		}
	}
	return ""
}

// sentAt is when a message was sent first.
func sentAt(d *forebay.Delivery) time.Time {
	if ms, err := strconv.ParseInt(d.Headers[headSent], 10, 64); err == nil {
		return time.UnixMilli(ms)
	}
	return d.SentAt
}
