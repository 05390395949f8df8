package filter_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/filter"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	t.Parallel()
	term := func(value string, path ...string) engine.PayloadTerm {
		return engine.PayloadTerm{Path: path, Value: value}
	}
	tests := []struct {
		text string
		want engine.JobFilter
	}{
		{"", engine.JobFilter{}},
		{"  \t\n", engine.JobFilter{}},
		{`state:dead queue:mail kind:email.* payload.user.id:42 since:1h error:"timed out"`, engine.JobFilter{
			States: []forebay.State{forebay.StateDead}, Queue: "mail", Kind: "email.*", Error: "timed out",
			Since: now.Add(-time.Hour), Payload: []engine.PayloadTerm{term("42", "user", "id")},
		}},
		{"state:dead state:expired state:dead", engine.JobFilter{States: []forebay.State{forebay.StateDead, forebay.StateExpired}}},
		{"tag:a tag:b tenant:t group:g owner:o parent:p id:i code:22P02", engine.JobFilter{
			Tags: []string{"a", "b"}, Tenant: "t", Group: "g", Owner: "o", Parent: "p", ID: "i", Code: "22P02",
		}},
		{"name:resize", engine.JobFilter{Kind: "resize"}},
		{"since:7d until:2026-03-04T10:00:00+01:00", engine.JobFilter{Since: now.Add(-7 * 24 * time.Hour), Until: now.Add(-3 * time.Hour)}},
		{`payload."a.b"."c:d".e:"" payload.x:true payload.x:null`, engine.JobFilter{
			Payload: []engine.PayloadTerm{term("", "a.b", "c:d", "e"), term("true", "x"), term("null", "x")},
		}},
		{`payload:42`, engine.JobFilter{Payload: []engine.PayloadTerm{{Path: []string{}, Value: "42"}}}},
		{`error:"he said \"no\" \\ left" id:a:b:c`, engine.JobFilter{Error: `he said "no" \ left`, ID: "a:b:c"}},
		{`kind:账单.* payload.名:"李 雷"`, engine.JobFilter{Kind: "账单.*", Payload: []engine.PayloadTerm{term("李 雷", "名")}}},
	}
	for _, tt := range tests {
		got, err := filter.Parse(tt.text, now)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s\n got %+v\nwant %+v", tt.text, got, tt.want)
		}
		again, err := filter.Parse(filter.String(got), now.Add(time.Hour))
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s is written as %s, read as %+v, %v", tt.text, filter.String(got), again, err)
		}
	}
}

func TestWhatIsWrongIsSaidWithItsColumn(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, column, says string }{
		{"dead", "column 1:", "key:value"},
		{"queue:mail dead", "column 12:", "a key is one of state, queue, kind, payload.PATH"},
		{"sate:dead", "column 1:", `"sate" is no key`},
		{"状:x", "column 1:", "is no key"},
		{"kind:账单 state:done", "column 15:", "waiting, delayed, active, completed, dead, cancelled, expired"},
		{"queue:a queue:b", "column 9:", "may be repeated"},
		{"kind:a name:b", "column 8:", "may be repeated"},
		{"queue:", "column 7:", "has no value"},
		{`queue:""`, "column 7:", "has no value"},
		{"payload.a:", "column 11:", `write ""`},
		{"payload..a:1", "column 9:", "missing"},
		{":x", "column 1:", "missing"},
		{"queue.x:1", "column 1:", "is no key"},
		{`error:"open`, "column 7:", "has no end"},
		{`error:a"b`, "column 8:", "within"},
		{`error:"a"b`, "column 10:", "space must follow"},
		{`error:"a\n"`, "column 10:", "backslash"},
		{`"queue":a`, "column 1:", "no quotes"},
		{"since:yesterday", "column 7:", "1h30m"},
		{"since:-1h", "column 7:", "1h30m"},
		{"until:5", "column 7:", "1h30m"},
		{"id:a\x00", "column 5:", "control"},
		{"id:a\xff", "column 5:", "UTF-8"},
		{strings.Repeat("tag:x ", 17), "column 97:", "tags"},
		{strings.Repeat("payload.a:1 ", 33), "column 385:", "more than 32 terms"},
		{"payload" + strings.Repeat(".a", 17) + ":1", "column 41:", "more than 16 parts"},
		{"id:" + strings.Repeat("x", 4094), "column 4097:", "at most 4096"},
	}
	for _, tt := range tests {
		_, err := filter.Parse(tt.text, now)
		if forebay.CodeOf(err) != forebay.CodeInvalid || !strings.Contains(err.Error(), tt.column) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.60q: %v; it should name %q and %q", tt.text, err, tt.column, tt.says)
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "0s": 0, "0d": 0, "1.5s": 1500 * time.Millisecond,
	} {
		if got, err := filter.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "-1s", "1d-1h", "d", "1.5d", "999999d", "1d+1h", "40000d", "9999999999d", "1h1d"} {
		if got, err := filter.ParseDuration(text); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

// Whatever is read is written so that it is read again as the same.
func FuzzParse(f *testing.F) {
	f.Add(`state:dead queue:mail kind:email.* payload.user.id:42 since:1h error:"timed out"`)
	f.Add(`payload."a.b":"" tag:x until:2026-03-04T10:00:00+01:00 error:"\"\\"`)
	f.Add("id:\u00a0 kind:\ufffd")
	f.Fuzz(func(t *testing.T, text string) {
		one, err := filter.Parse(text, now)
		if err != nil {
			if forebay.CodeOf(err) != forebay.CodeInvalid || !strings.Contains(err.Error(), "column") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		written := filter.String(one)
		if len(written) > filter.MaxBytes {
			return // quotes made a text at the bound longer
		}
		again, err := filter.Parse(written, now)
		if err != nil || !reflect.DeepEqual(one, again) {
			t.Fatalf("%q is read as %+v, written as %q, and then read as %+v, %v", text, one, written, again, err)
		}
	})
}
