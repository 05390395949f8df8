package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
)

func TestCheckMessage(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("x", 5000)
	many := make(map[string]string)
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFG" {
		many[string(c)] = ""
	}
	for name, c := range map[string]struct {
		change func(m *forebay.Message)
		field  string // empty: it is fine
		code   forebay.Code
		says   string
	}{
		"whole":             {change: func(m *forebay.Message) {}},
		"no id":             {func(m *forebay.Message) { m.ID = "" }, "id", forebay.CodeInvalid, "no id"},
		"no kind":           {change: func(m *forebay.Message) { m.Kind = "" }},
		"no payload":        {change: func(m *forebay.Message) { m.Payload = nil }},
		"largest payload":   {change: func(m *forebay.Message) { m.Payload = make([]byte, forebay.MaxPayloadBytes) }},
		"longest id":        {change: func(m *forebay.Message) { m.ID = long[:forebay.MaxIDBytes] }},
		"unicode":           {change: func(m *forebay.Message) { m.Kind, m.Group = "画像.変換", "ü" }},
		"fifo":              {change: func(m *forebay.Message) { m.Queue = "a-B_9.fifo" }},
		"tab in a header":   {change: func(m *forebay.Message) { m.Headers = map[string]string{"a": "b\tc"} }},
		"tab beside ü":      {change: func(m *forebay.Message) { m.Headers = map[string]string{"a": "b\tü"} }},
		"latest delay":      {change: func(m *forebay.Message) { m.NotBefore = now.Add(forebay.MaxDelay) }},
		"past":              {change: func(m *forebay.Message) { m.NotBefore = now.Add(-time.Hour) }},
		"most attempts":     {change: func(m *forebay.Message) { m.Limits.Attempts = MaxAttempts }},
		"no queue":          {func(m *forebay.Message) { m.Queue = "" }, "queue", forebay.CodeInvalid, "no name"},
		"blank in queue":    {func(m *forebay.Message) { m.Queue = "a b" }, "queue", forebay.CodeInvalid, "the character ' '"},
		"dot in queue":      {func(m *forebay.Message) { m.Queue = "a.b" }, "queue", forebay.CodeInvalid, "allowed are"},
		"only an ending":    {func(m *forebay.Message) { m.Queue = ".fifo" }, "queue", forebay.CodeInvalid, "ending"},
		"long queue":        {func(m *forebay.Message) { m.Queue = long[:81] }, "queue", forebay.CodeInvalid, "81 bytes"},
		"long id":           {func(m *forebay.Message) { m.ID = long[:129] }, "id", forebay.CodeInvalid, "at most 128"},
		"NUL in id":         {func(m *forebay.Message) { m.ID = "a\x00b" }, "id", forebay.CodeInvalid, "control characters"},
		"broken UTF-8":      {func(m *forebay.Message) { m.Group = "a\xffb" }, "group", forebay.CodeInvalid, "UTF-8"},
		"C1 control":        {func(m *forebay.Message) { m.DedupKey = "a\u0085b" }, "dedupKey", forebay.CodeInvalid, "control"},
		"newline in kind":   {func(m *forebay.Message) { m.Kind = "a\nb" }, "kind", forebay.CodeInvalid, `"a\nb"`},
		"long limit key":    {func(m *forebay.Message) { m.LimitKey = long }, "limitKey", forebay.CodeInvalid, "5000 bytes"},
		"large payload":     {func(m *forebay.Message) { m.Payload = make([]byte, forebay.MaxPayloadBytes+1) }, "payload", forebay.CodeTooLarge, "1048577"},
		"many headers":      {func(m *forebay.Message) { m.Headers = many }, "headers", forebay.CodeInvalid, "33 headers"},
		"large headers":     {func(m *forebay.Message) { m.Headers = map[string]string{"a": long} }, "headers", forebay.CodeInvalid, "5001 bytes"},
		"nameless header":   {func(m *forebay.Message) { m.Headers = map[string]string{"": "x"} }, "headers", forebay.CodeInvalid, "no name"},
		"newline in header": {func(m *forebay.Message) { m.Headers = map[string]string{"a": "x\r\ny"} }, "headers", forebay.CodeInvalid, `"a"`},
		"late":              {func(m *forebay.Message) { m.NotBefore = now.Add(forebay.MaxDelay + 1) }, "notBefore", forebay.CodeInvalid, "365 days"},
		"priority":          {func(m *forebay.Message) { m.Priority = 11 }, "priority", forebay.CodeInvalid, "0 to 9"},
		"negative window":   {func(m *forebay.Message) { m.DedupWindow = -1 }, "dedupWindow", forebay.CodeInvalid, "365 days"},
		"attempts":          {func(m *forebay.Message) { m.Limits.Attempts = MaxAttempts + 1 }, "limits.attempts", forebay.CodeInvalid, "1001"},
		"deliveries":        {func(m *forebay.Message) { m.Limits.Deliveries = -1 }, "limits.deliveries", forebay.CodeInvalid, "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := forebay.Message{ID: "1", Queue: "events", Kind: "app_open", Payload: []byte("{}")}
			c.change(&m)
			err := CheckMessage(&m, now)
			if c.field == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			e, ok := err.(*forebay.Error)
			if !ok {
				t.Fatalf("got %v, want an error for %s", err, c.field)
			}
			if e.Field != c.field || e.Code != c.code || !strings.Contains(e.Text, c.says) {
				t.Errorf("got %s, %s, %q; want %s, %s and %q in it", e.Field, e.Code, e.Text, c.field, c.code, c.says)
			}
		})
	}
}
