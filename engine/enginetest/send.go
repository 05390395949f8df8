package enginetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func sendCases() []testCase {
	return []testCase{
		{name: "send/answers in the order of input", invariants: []int{8}, run: sendAnswers},
		{name: "send/invalid items are refused one by one", invariants: []int{8}, run: sendInvalid},
		{name: "send/items at the limits are taken", invariants: []int{8}, run: sendAtLimits},
		{name: "send/bounds of the call", invariants: []int{8}, run: sendBounds},
		{name: "send/ended context stores nothing", invariants: []int{1}, run: sendEndedContext},
		{name: "send/side by side", invariants: []int{1, 4}, run: sendConcurrently},
		{name: "send/many queues in one call", invariants: []int{1}, run: sendQueues},
	}
}

func sendAnswers(v *env) {
	res := v.send(msg("a"), msg("b"), msg("c"))
	for i, id := range []string{"a", "b", "c"} {
		if res[i].ID != id || res[i].Duplicate || res[i].Conflict {
			v.failf("result %d is %+v, want a new %q", i, res[i], id)
		}
	}
	v.want(v.take(10), "a", "b", "c")
	if res := v.send(); len(res) != 0 {
		v.failf("send of nothing gave %+v", res)
	}
}

// invalidMessages are wrong in one way each.
func invalidMessages() map[string]forebay.Message {
	long := func(n int) string { return strings.Repeat("x", n+1) }
	many := make(map[string]string)
	for i := range forebay.MaxHeaders + 1 {
		many[fmt.Sprint(i)] = "v"
	}
	change := func(f func(m *forebay.Message)) forebay.Message { return msg("bad", f) }
	return map[string]forebay.Message{
		"no id":          change(func(m *forebay.Message) { m.ID = "" }),
		"long id":        change(func(m *forebay.Message) { m.ID = long(forebay.MaxIDBytes) }),
		"no queue":       change(func(m *forebay.Message) { m.Queue = "" }),
		"long queue":     change(func(m *forebay.Message) { m.Queue = long(forebay.MaxQueueBytes) }),
		"long kind":      change(func(m *forebay.Message) { m.Kind = long(forebay.MaxKindBytes) }),
		"long group":     change(func(m *forebay.Message) { m.Group = long(forebay.MaxIDBytes) }),
		"long dedup key": change(func(m *forebay.Message) { m.DedupKey = long(forebay.MaxIDBytes) }),
		"long limit key": change(func(m *forebay.Message) { m.LimitKey = long(forebay.MaxIDBytes) }),
		"many headers":   change(func(m *forebay.Message) { m.Headers = many }),
		"long headers": change(func(m *forebay.Message) {
			m.Headers = map[string]string{"name": long(forebay.MaxHeaderBytes)}
		}),
		"large payload":       change(func(m *forebay.Message) { m.Payload = make([]byte, forebay.MaxPayloadBytes+1) }),
		"a control character": change(func(m *forebay.Message) { m.Kind = "tab\tline\n" }),
		"far future": change(func(m *forebay.Message) {
			m.NotBefore = time.Now().Add(forebay.MaxDelay + 24*time.Hour)
		}),
	}
}

func sendInvalid(v *env) {
	n := 0
	for what, bad := range invalidMessages() {
		n++
		before, after := fmt.Sprint("before", n), fmt.Sprint("after", n)
		res, err := v.e.Send(v.ctx, []forebay.Message{msg(before), bad, msg(after)})
		if err != nil || len(res) != 3 {
			v.failf("%s: send gave %d results, %v", what, len(res), err)
		}
		if res[0].Err != nil || res[2].Err != nil {
			v.failf("%s: its neighbours got %v, %v", what, res[0].Err, res[2].Err)
		}
		if code := forebay.CodeOf(res[1].Err); code != forebay.CodeInvalid && code != forebay.CodeTooLarge {
			v.failf("%s: error %v, want code invalid or too_large", what, res[1].Err)
		}
		v.want(v.take(10), before, after)
	}
}

func sendAtLimits(v *env) {
	long := func(n int) string { return strings.Repeat("x", n) }
	headers := make(map[string]string)
	for i := range forebay.MaxHeaders {
		headers[fmt.Sprint("h", i)] = "v"
	}
	m := forebay.Message{
		ID: long(forebay.MaxIDBytes), Queue: long(forebay.MaxQueueBytes), Kind: long(forebay.MaxKindBytes),
		Group: long(forebay.MaxIDBytes), LimitKey: long(forebay.MaxIDBytes), Headers: headers,
		Payload: make([]byte, forebay.MaxPayloadBytes), Limits: forebay.Limits{Attempts: 1, Deliveries: 1},
	}
	v.send(m)
	ds := v.receive(engine.Receive{Queue: m.Queue, Max: 1, Lease: v.lease()})
	v.want(ds, m.ID)
	v.same(ds[0].Message, m)
}

func sendBounds(v *env) {
	msgs := make([]forebay.Message, engine.MaxSend+1)
	for i := range msgs {
		msgs[i] = msg(fmt.Sprint(i))
	}
	if _, err := v.e.Send(v.ctx, msgs); forebay.CodeOf(err) != forebay.CodeInvalid {
		v.failf("send of %d gave %v, want code invalid", len(msgs), err)
	}
	v.none()
	v.send(msgs[:engine.MaxSend]...)
	if s := v.stats(testQueue); s.Waiting != engine.MaxSend {
		v.failf("%d wait after a send of %d", s.Waiting, engine.MaxSend)
	}
}

func sendEndedContext(v *env) {
	ctx, cancel := context.WithCancel(v.ctx)
	cancel()
	if _, err := v.e.Send(ctx, []forebay.Message{msg("a")}); err == nil {
		v.failf("send with an ended context gave no error")
	}
	// Whether it was stored is not told; repeating is harmless either way.
	v.send(msg("a"))
	v.want(v.takeAll(testQueue), "a")
}

func sendConcurrently(v *env) {
	const senders, each = 24, 30
	v.each(senders, func(i int) error {
		for j := range each {
			res, err := v.e.Send(v.ctx, []forebay.Message{msg(fmt.Sprintf("%d-%d", i, j))})
			if err != nil {
				return err
			}
			if res[0].Err != nil || res[0].Duplicate {
				return fmt.Errorf("sender %d, message %d: %+v", i, j, res[0])
			}
		}
		return nil
	})
	got := make(map[string]bool)
	for _, d := range v.takeAll(testQueue) {
		if got[d.ID] {
			v.failf("%q was handed out twice", d.ID)
		}
		got[d.ID] = true
	}
	if len(got) != senders*each {
		v.failf("%d of %d messages came", len(got), senders*each)
	}
}

func sendQueues(v *env) {
	v.send(msg("a", inQueue("q1")), msg("b", inQueue("q2")), msg("c", inQueue("q1")))
	v.want(v.takeAll("q1"), "a", "c")
	v.want(v.takeAll("q2"), "b")
	v.none()
}
