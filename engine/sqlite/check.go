package sqlite

import (
	"time"

	"github.com/forebayhq/forebay"
)

// checkMessage refuses what the contract does not allow, before it can get near
// the other messages of its commit.
func checkMessage(m *forebay.Message, now time.Time) error {
	headers := 0
	for name, value := range m.Headers {
		headers += len(name) + len(value)
	}
	bounds := []struct {
		field    string
		n        int
		min, max int
	}{
		{"id", len(m.ID), 1, forebay.MaxIDBytes},
		{"queue", len(m.Queue), 1, forebay.MaxQueueBytes},
		{"kind", len(m.Kind), 0, forebay.MaxKindBytes},
		{"dedupKey", len(m.DedupKey), 0, forebay.MaxIDBytes},
		{"group", len(m.Group), 0, forebay.MaxIDBytes},
		{"limitKey", len(m.LimitKey), 0, forebay.MaxIDBytes},
		{"headers", len(m.Headers), 0, forebay.MaxHeaders},
		{"headers", headers, 0, forebay.MaxHeaderBytes},
		{"payload", len(m.Payload), 0, forebay.MaxPayloadBytes},
		{"priority", m.Priority.Level(), 0, levels - 1},
		{"dedupWindow", int(m.DedupWindow), 0, int(forebay.MaxDelay)},
		{"limits.attempts", m.Limits.Attempts, 0, 1 << 20},
		{"limits.deliveries", m.Limits.Deliveries, 0, 1 << 20},
	}
	for _, b := range bounds {
		if b.n < b.min || b.n > b.max {
			return invalidMessage(b.field, "%d is outside %d to %d", b.n, b.min, b.max)
		}
	}
	if m.NotBefore.After(now.Add(forebay.MaxDelay)) {
		return invalidMessage("notBefore", "more than %s ahead", forebay.MaxDelay)
	}
	return nil
}

func invalidMessage(field, format string, args ...any) error {
	err := forebay.Errorf(forebay.CodeInvalid, "sqlite: send", format, args...)
	err.Field = field
	return err
}

func checkQueue(op, name string) error {
	if name == "" || len(name) > forebay.MaxQueueBytes {
		err := forebay.Errorf(forebay.CodeInvalid, op, "a queue name has 1 to %d bytes", forebay.MaxQueueBytes)
		err.Field = "queue"
		return err
	}
	return nil
}
