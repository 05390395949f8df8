package schedule

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// FuzzDefinition feeds definitions, as documents have them, through check, storage and
// the search for ticks: nothing panics or hangs, what passes the check can be stored
// and read again, and its ticks ascend between start and end.
func FuzzDefinition(f *testing.F) {
	for _, seed := range []string{
		`{"name":"s","cron":"30 2 * * *","timezone":"Europe/Berlin","job":{"queue":"q","name":"k","data":{"a":1}}}`,
		`{"name":"s","cron":"*/7 1-5,22 1,15 jan-jun mon","start":"2026-01-01T00:00:00Z","end":"2027-01-01T00:00:00Z","job":{"queue":"q","name":"k"}}`,
		`{"name":"s","every":90000000000,"jitter":5000000000,"limit":3,"missed":"all","overlap":"wait","job":{"queue":"q","name":"k","tags":["x"],"timeout":1}}`,
		`{"name":"s","cron":"TZ=Asia/Tokyo * * * * *","job":{"queue":"q","name":"k"}}`,
		`{"name":"s","cron":"@daily","timezone":"../../etc/passwd","job":{"queue":"q","name":"k"}}`,
		`{"name":"s","every":1000000000,"start":"1970-01-01T00:00:00Z","job":{"queue":"q","name":"k","priority":77}}`,
	} {
		f.Add([]byte(seed), int64(1_790_000_000))
	}
	f.Fuzz(func(t *testing.T, raw []byte, unix int64) {
		now := time.Unix(unix%7_000_000_000, 0)
		var d Definition
		if json.Unmarshal(raw, &d) != nil || d.check(now) != nil {
			return
		}
		var z zones
		p, err := z.plan(d, now)
		if err != nil {
			if forebay.CodeOf(err) != forebay.CodeInvalid {
				t.Fatalf("%+v: %v", d, err)
			}
			return
		}
		st := stored{Definition: d, State: State{Since: now, After: now}}
		doc, err := st.document(0)
		if err != nil {
			t.Fatalf("%+v cannot be stored: %v", d, err)
		}
		if err := engine.CheckDocument(&doc); err != nil {
			t.Fatalf("%+v cannot be stored: %v", d, err)
		}
		if _, err := decode(doc); err != nil {
			t.Fatalf("%s cannot be read: %v", doc.Value, err)
		}
		last := now
		for _, tick := range p.preview(now, 20) {
			if !tick.After(last) || tick.Before(d.Start) || !d.End.IsZero() && tick.After(d.End) || tick.Nanosecond() != 0 {
				t.Fatalf("%+v: after %s comes %s", d, last, tick)
			}
			last = tick
		}
		p.decide(&st.State, now.Add(400*24*time.Hour), former{})
		if n := len(st.State.Pending); n > MaxCatchUp || st.State.Count != int64(n) {
			t.Fatalf("%d pending of %d", n, st.State.Count)
		}
	})
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"v":1,"definition":{"name":"s","every":-5},"state":{"since":"2026-01-01T00:00:00Z","after":"2026-01-01T00:00:00Z"}}`))
	f.Add([]byte(`{"v":1,"definition":{"name":"s","cron":"* * * * *"},"state":{"since":"2026-01-01T00:00:00Z","after":"2026-01-01T00:00:00Z","pending":[{"job":"x","at":"2026-01-01T00:00:00Z"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		st, err := decode(engine.Document{Key: "s", Value: raw})
		if err != nil {
			if c := forebay.CodeOf(err); c != forebay.CodeDamaged && c != forebay.CodeTooNew {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		var z zones
		p, err := z.plan(st.Definition, st.State.Since)
		if err != nil {
			return
		}
		p.tickAfter(&st.State)
		p.decide(&st.State, time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC), former{})
	})
}
