package queue

import (
	"context"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// SendMessage sends one message.
func (s *Service) SendMessage(ctx context.Context, in SendInput) (SendOutput, error) {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return SendOutput{}, err
	}
	m, out, err := s.prepare(ctx, q, &in, newIDs(1)[0])
	if err != nil {
		return SendOutput{}, err
	}
	results, err := s.store(ctx, q, []forebay.Message{m})
	if err != nil {
		return SendOutput{}, err
	}
	if err := results[0].Err; err != nil {
		return SendOutput{}, s.failed(ctx, err)
	}
	out.MessageId, out.SequenceNumber = splitID(results[0].ID)
	return out, nil
}

// SendMessageBatch sends several; each is told of by itself.
func (s *Service) SendMessageBatch(ctx context.Context, in SendBatchInput) (SendBatchOutput, error) {
	var all SendBatchOutput
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return all, err
	}
	if err := s.checkEntries("SendMessageBatchRequestEntry", len(in.Entries), func(i int) string { return in.Entries[i].ID }); err != nil {
		return all, err
	}
	if err := s.checkSum(in.Entries); err != nil {
		return all, err
	}
	if err := s.forAll(q, in.Entries); err != nil {
		return all, err
	}
	n := len(in.Entries)
	ids, msgs := newIDs(n), make([]forebay.Message, 0, n)
	all.Successful = make([]SendOutput, 0, n)
	for i := range in.Entries {
		e := &in.Entries[i]
		m, out, err := s.prepare(ctx, q, e, ids[i])
		if err != nil {
			all.Failed = append(all.Failed, failedEntry(e.ID, err))
			continue
		}
		out.ID = e.ID
		msgs, all.Successful = append(msgs, m), append(all.Successful, out)
	}
	if len(msgs) == 0 {
		return all, nil
	}
	results, err := s.store(ctx, q, msgs)
	if err != nil {
		return SendBatchOutput{}, err
	}
	sent := all.Successful
	all.Successful = sent[:0]
	for i, r := range results {
		if r.Err != nil {
			all.Failed = append(all.Failed, failedEntry(sent[i].ID, s.failed(ctx, r.Err)))
			continue
		}
		sent[i].MessageId, sent[i].SequenceNumber = splitID(r.ID)
		all.Successful = append(all.Successful, sent[i])
	}
	return all, nil
}

// forAll is what refuses a whole batch: an entry of a FIFO queue without a group or
// dedup id. A batch calls that invalid where a single call says that it is missing.
func (s *Service) forAll(q *queue, entries []SendInput) error {
	for i := range entries {
		if e := &entries[i]; q.fifo && e.MessageGroupId == nil {
			return invalidValue("%s", missing("MessageGroupId").Message)
		} else if q.fifo && e.MessageDeduplicationId == nil && !q.content {
			return noDedupID()
		}
	}
	return nil
}

// checkSum refuses a batch that is too long in all.
func (s *Service) checkSum(entries []SendInput) error {
	sum := 0
	for i := range entries {
		sum += len(entries[i].MessageBody)
		for name, a := range entries[i].MessageAttributes {
			sum += len(name) + len(a.DataType) + len(a.BinaryValue)
			if a.StringValue != nil {
				sum += len(*a.StringValue)
			}
		}
	}
	if sum > s.limits.bytes {
		return fault("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", s.limits.bytes, sum)
	}
	return nil
}

// prepare makes a message of what is sent, and the answer but for its id.
func (s *Service) prepare(ctx context.Context, q *queue, in *SendInput, id string) (m forebay.Message, out SendOutput, err error) {
	if in.MessageBody == "" {
		return m, out, missing("MessageBody")
	}
	size, err := checkAttributes(in.MessageAttributes)
	if err != nil {
		return m, out, err
	}
	if size += len(in.MessageBody); size > q.maxBytes {
		return m, out, invalidValue("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", q.maxBytes)
	}
	if err := checkText(in.MessageBody); err != nil {
		return m, out, err
	}
	trace, err := checkSystem(in.SystemAttributes)
	if err != nil {
		return m, out, err
	}
	m = forebay.Message{ID: id, Queue: q.name, DedupWindow: time.Millisecond, Fingerprint: 1}
	if err := s.route(q, in, &m); err != nil {
		return m, out, err
	}
	if m.Kind, err = kindOf(in.MessageAttributes); err != nil {
		return m, out, err
	}
	pack(&m, in.MessageBody, in.MessageAttributes)
	if trace != "" {
		header(&m, headTrace, trace)
	}
	if caller := callerOf(ctx); caller != "" {
		header(&m, headSender, caller)
	}
	out = SendOutput{MD5OfBody: hexMD5([]byte(in.MessageBody)), MD5OfAttributes: attributesMD5(in.MessageAttributes), MD5OfSystem: attributesMD5(in.SystemAttributes)}
	return m, out, nil
}

// kindOf is the kind that a sender gives its message for Forebay's own workers.
func kindOf(attributes map[string]Attribute) (string, error) {
	a, is := attributes[ownKind]
	if !is {
		return "", nil
	}
	if a.StringValue == nil || len(*a.StringValue) > forebay.MaxKindBytes || !plain(*a.StringValue) || strings.Contains(*a.StringValue, "\t") {
		return "", invalidValue("The message attribute '%s' must be a String of at most %d bytes of plain text.", ownKind, forebay.MaxKindBytes)
	}
	return *a.StringValue, nil
}

// route sets when a message may be received, and what its group and dedup id mean.
func (s *Service) route(q *queue, in *SendInput, m *forebay.Message) error {
	delay := q.delay
	if s.tells(q) {
		delay = 0
	}
	if d := in.DelaySeconds; d != nil {
		switch {
		case *d < 0 || *d > s.limits.delay:
			return badValue("DelaySeconds", *d, "DelaySeconds must be >= 0 and <= "+itoa(s.limits.delay)+".")
		case q.fifo && *d > 0:
			return badValue("DelaySeconds", *d, "The request include parameter that is not valid for this queue type.")
		case !q.fifo:
			delay = time.Duration(*d) * time.Second
		}
	}
	if delay > 0 {
		m.NotBefore = s.cfg.Now().Add(delay)
	}
	if in.MessageGroupId != nil {
		if err := checkToken("MessageGroupId", *in.MessageGroupId); err != nil {
			return err
		}
	}
	if q.fifo {
		return s.routeFifo(q, in, m)
	}
	if in.MessageDeduplicationId != nil {
		return badValue("MessageDeduplicationId", *in.MessageDeduplicationId, "The request include parameter that is not valid for this queue type.")
	}
	if in.MessageGroupId != nil {
		m.LimitKey = *in.MessageGroupId
	}
	return nil
}
