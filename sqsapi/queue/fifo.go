package queue

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/forebayhq/forebay"
)

// routeFifo sets the group and the dedup id of a message.
func (s *Service) routeFifo(q *queue, in *SendInput, m *forebay.Message) error {
	if in.MessageGroupId == nil {
		return missing("MessageGroupId")
	}
	m.Group = *in.MessageGroupId
	var id string
	switch {
	case in.MessageDeduplicationId != nil:
		id = *in.MessageDeduplicationId
		if err := checkToken("MessageDeduplicationId", id); err != nil {
			return err
		}
	case q.content:
		sum := sha256.Sum256([]byte(in.MessageBody))
		id = hex.EncodeToString(sum[:])
	default:
		return noDedupID()
	}
	header(m, headDedup, id)
	m.DedupKey, m.DedupWindow = q.dedupKey(m.Group, id), dedupWindow
	return nil
}

func noDedupID() *Fault {
	return invalidValue("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
}

// dedupKey is what stands for a dedup id in the engine. A queue that was created anew
// or purged has forgotten what was sent before.
func (q *queue) dedupKey(group, id string) string {
	scope := ""
	if q.perGroup {
		scope = group
	}
	sum := sha256.Sum256([]byte(q.Life + "\x00" + itoa(int(q.Since)) + "\x00" + scope + "\x00" + id))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// store gives messages to the engine. Those of a FIFO queue get their numbers on the
// way; see funnel.
func (s *Service) store(ctx context.Context, q *queue, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if q.fifo {
		return q.live.funnel.send(ctx, msgs)
	}
	results, err := s.engine.Send(ctx, msgs)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	return results, nil
}

// numberAndSend sends messages of one FIFO queue, in their order. One call at a time
// runs for a queue, so that numbers grow in the order in which messages are stored.
func (s *Service) numberAndSend(ctx context.Context, l *live, msgs []forebay.Message) ([]forebay.SendResult, error) {
	first, err := s.numbers.take(ctx, 2*len(msgs)) // those for a second try, too
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	now := s.cfg.Now()
	for i := range msgs {
		msgs[i].ID = numbered(stamp(msgs[i].ID, now), first+int64(i))
	}
	results, err := s.sendOnce(ctx, l, msgs, now)
	if err != nil {
		return nil, err
	}
	return results, s.sendAgain(ctx, l, msgs, results, first+int64(len(msgs)), now)
}

// sequenced groups the deliveries of one receive, as AWS does: the messages of one
// group after the other. Within a group their order stays.
func sequenced(ds []forebay.Delivery) []forebay.Delivery {
	seen := map[string]int{}
	for i := range ds {
		if _, is := seen[ds[i].Group]; !is {
			seen[ds[i].Group] = len(seen)
		}
	}
	if len(seen) < 2 || len(seen) == len(ds) {
		return ds
	}
	byGroup := make([][]forebay.Delivery, len(seen))
	for i := range ds {
		n := seen[ds[i].Group]
		byGroup[n] = append(byGroup[n], ds[i])
	}
	out := ds[:0:0]
	for _, g := range byGroup {
		out = append(out, g...)
	}
	return out
}
