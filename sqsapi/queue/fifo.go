package queue

import "github.com/forebayhq/forebay"

func (s *Service) routeFifo(q *queue, in *SendInput, m *forebay.Message) error {
	if in.MessageGroupId == nil {
		return missing("MessageGroupId")
	}
	m.Group = *in.MessageGroupId
	return nil
}
