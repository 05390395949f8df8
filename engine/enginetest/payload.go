package enginetest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/forebayhq/forebay"
)

func payloadCases() []testCase {
	return []testCase{
		{name: "payload/every byte", run: payloadBytes},
		{name: "payload/empty", run: payloadEmpty},
		{name: "payload/large", run: payloadLarge},
		{name: "payload/all fields of a message", run: payloadFields},
		{name: "payload/names in any script", run: payloadUnicode},
		{name: "payload/arguments are not kept", run: payloadNotKept},
		{name: "payload/many sizes in one batch", invariants: []int{8}, run: payloadMixed},
	}
}

// same wants the content and routing of a message as they were sent.
func (v *env) same(got, want forebay.Message) {
	v.Helper()
	if !bytes.Equal(got.Payload, want.Payload) {
		v.failf("%q: payload of %d bytes differs from the one sent, of %d", want.ID, len(got.Payload), len(want.Payload))
	}
	if len(got.Headers)+len(want.Headers) > 0 && !maps.Equal(got.Headers, want.Headers) {
		v.failf("%q: headers %v, want %v", want.ID, got.Headers, want.Headers)
	}
	if got.ID != want.ID || got.Queue != want.Queue || got.Kind != want.Kind || got.Group != want.Group {
		v.failf("id, queue, kind, group are %q, %q, %q, %q; want %q, %q, %q, %q",
			got.ID, got.Queue, got.Kind, got.Group, want.ID, want.Queue, want.Kind, want.Group)
	}
	if got.LimitKey != want.LimitKey || got.DedupKey != want.DedupKey || got.Limits != want.Limits {
		v.failf("%q: limit key, dedup key, limits are %q, %q, %+v; want %q, %q, %+v",
			want.ID, got.LimitKey, got.DedupKey, got.Limits, want.LimitKey, want.DedupKey, want.Limits)
	}
	if got.Priority.Level() != want.Priority.Level() {
		v.failf("%q: level %d, want %d", want.ID, got.Priority.Level(), want.Priority.Level())
	}
}

// round sends a message and wants it back as it was.
func (v *env) round(m forebay.Message) {
	v.Helper()
	v.send(m)
	ds := v.takeAll(m.Queue)
	v.want(ds, m.ID)
	v.same(ds[0].Message, m)
	v.ack(ds...)
}

func payloadBytes(v *env) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	v.round(msg("all", withBody(string(all))))
	v.round(msg("invalid", withBody("\xff\xfe\x00 lone \xed\xa0\x80")))
	v.round(msg("nul", withBody("\x00")))
}

func payloadEmpty(v *env) {
	v.round(msg("empty", withBody("")))
	v.round(msg("nil", func(m *forebay.Message) { m.Payload, m.Kind = nil, "" }))
	v.round(msg("headers", func(m *forebay.Message) { m.Headers = map[string]string{"empty": ""} }))
}

func payloadLarge(v *env) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{4095, 4096, 65_537, forebay.MaxPayloadBytes} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(rng.Uint32())
		}
		v.round(msg(fmt.Sprint("m", size), withBody(string(body))))
	}
}

func payloadFields(v *env) {
	m := forebay.Message{
		ID: "a", Queue: "r", Kind: "kind", Payload: []byte(`{"x":1}`), Headers: map[string]string{"a": "1", "b": "2"},
		Priority: forebay.At(2), DedupKey: "k", DedupWindow: time.Hour, Group: "g", LimitKey: "l",
		Limits: forebay.Limits{Attempts: 3, Deliveries: 7},
	}
	if v.h.Cannot[Priorities] != "" {
		m.Priority = 0
	}
	if v.h.Cannot[DedupKeys] != "" {
		m.DedupKey = ""
	}
	v.round(m)
}

func payloadUnicode(v *env) {
	for i, s := range []string{"größe", "日本語", "🙂👩‍👩‍👧", "a/b?c=d&e", "it's \"quoted\"; DROP TABLE x --"} {
		v.round(msg(fmt.Sprint(i, s), inGroup(s), withLimit(s), func(m *forebay.Message) {
			m.Kind, m.Headers = s, map[string]string{s: s}
			if v.h.Cannot[DedupKeys] == "" {
				m.DedupKey = s
			}
		}))
	}
}

func payloadNotKept(v *env) {
	m := msg("a", withBody("before"))
	m.Headers = map[string]string{"h": "before"}
	v.send(m)
	copy(m.Payload, "AFTER!")
	m.Headers["h"] = "after"
	d := v.one("a")
	if string(d.Payload) != "before" || d.Headers["h"] != "before" {
		v.failf("payload %q, headers %v; the caller's changes came through", d.Payload, d.Headers)
	}
	v.end(d, forebay.Release, 0)
	if d := v.one("a"); string(d.Payload) != "before" {
		v.failf("payload %q at the second delivery", d.Payload)
	}
}

func payloadMixed(v *env) {
	var msgs []forebay.Message
	for i := range 500 {
		size := i * i % 3001
		if i%97 == 0 {
			size = 200_000
		}
		msgs = append(msgs, msg(fmt.Sprint("m", i), withBody(string(bytes.Repeat([]byte{byte(i)}, size)))))
	}
	v.send(msgs...)
	ds := v.takeAll(testQueue)
	if len(ds) != len(msgs) {
		v.failf("%d of %d came", len(ds), len(msgs))
	}
	for i, d := range ds {
		v.same(d.Message, msgs[i])
	}
	v.ack(ds...)
}
