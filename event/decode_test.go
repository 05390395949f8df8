package event

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const appended = `{"eventId":"0199a3f2-7c1e-7b51-9a07-6f5e2f1f8c11","eventType":"app_open","userId":"user-7",` +
	`"payload":{"screen":"home","n":5,"session":"0199a3f2-7c1e-7b51-9a07-6f5e2f1f8c11","device":{"os":"ios",` +
	`"version":"17.4","model":"iPhone15,2"},"duration":12.5,"tags":["a","b","c"]},"receivedAt":"2026-11-29T10:00:00.123456789Z",` +
	`"occurredAt":"2026-11-29T09:55:00Z","sentAt":"2026-11-29T09:59:59.5Z","source":"ios/native"}`

// The fast way must be taken for what it is made for, and for nothing that the
// full decoder reads otherwise.
var forms = map[string]struct {
	text string
	fast bool
}{
	"as appended":            {appended, true},
	"smallest":               {`{"eventId":"e","eventType":"t","payload":{},"receivedAt":"2026-01-02T03:04:05Z"}`, true},
	"text beyond ASCII":      {strings.Replace(appended, "user-7", "é世🙂", 1), true},
	"text with an escape":    {strings.Replace(appended, "user-7", `a\"b`, 1), false},
	"text that is not UTF-8": {strings.Replace(appended, "user-7", "\xff", 1), false},
	"text with a control":    {strings.Replace(appended, "user-7", "a\nb", 1), false},
	"the same name within":   {strings.Replace(appended, `"n":5`, `"n":5,"receivedAt":"2001-01-01T00:00:00Z"`, 1), true},
	"the same name in text":  {strings.Replace(appended, `"home"`, `",\"receivedAt\":\""`, 1), true},
	"receivedAt twice":       {strings.Replace(appended, `"sentAt"`, `"receivedAt"`, 1), false},
	"a name twice within":    {strings.Replace(appended, `"n":5`, `"n":5,"n":6`, 1), false},
	"payload not UTF-8":      {strings.Replace(appended, "home", "\xff", 1), false},
	"payload ends early":     {strings.Replace(appended, `]},"rec`, `]}},"rec`, 1), false},
	"payload is an array":    {strings.Replace(appended, `{"screen"`, `[{"screen"`, 1), false},
	"two payloads":           {strings.Replace(appended, `"payload":`, `"payload":{},"payload":`, 1), false},
	"spaces":                 {strings.ReplaceAll(appended, `,"`, `, "`), false},
	"space at the end":       {appended + " ", false},
	"more after the end":     {appended + "}", false},
	"cut":                    {appended[:len(appended)-1], false},
	"a new member":           {strings.Replace(appended, `"source"`, `"newer":[1],"source"`, 1), false},
	"another order":          {strings.Replace(strings.Replace(appended, `"eventId"`, `"x"`, 1), `"eventType"`, `"eventId"`, 1), false},
	"no such day":            {strings.Replace(appended, "2026-11-29T09:55", "2026-02-30T09:55", 1), false},
	"empty time":             {strings.Replace(appended, "2026-11-29T09:55:00Z", "", 1), false},
	"time with an offset":    {strings.Replace(appended, "2026-11-29T09:55:00Z", "2026-11-29T09:55:00+02:00", 1), false},
	"a brace in the source":  {strings.Replace(appended, "ios/native", "a}b", 1), false},
	"a brace in the user":    {strings.Replace(appended, "user-7", "a}b", 1), true},
	"nothing":                {"", false},
	"one brace":              {"}", false},
	"a space before":         {strings.Replace(appended, `{"screen"`, ` {"screen"`, 1), false},
	"offset and fraction":    {strings.Replace(appended, "59.5Z", "59.5+02:00", 1), false},
	"hour of one digit":      {strings.Replace(appended, "29T09:55", "29T9:55", 1), false},
	"second with a comma":    {strings.Replace(appended, "59.5Z", "59,5Z", 1), false},
	"empty texts":            {strings.Replace(appended, "user-7", "", 1), true},
}

func TestBothWaysOfDecodingAgree(t *testing.T) {
	for name, form := range forms {
		e, fast := decodeAppended([]byte(form.text))
		if fast != form.fast {
			t.Errorf("%s: the fast way was taken: %v, want %v", name, fast, form.fast)
		}
		if fast {
			agree(t, []byte(form.text), e)
		}
	}
}

func FuzzBothWaysOfDecodingAgree(f *testing.F) {
	for _, form := range forms {
		f.Add([]byte(form.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, fast := decodeAppended(b); fast {
			agree(t, b, e)
		}
	})
}

// agree compares what the fast way has read with the full decoder.
func agree(t *testing.T, b []byte, got Event) {
	t.Helper()
	want, err := decodeAny(b)
	if err != nil {
		t.Fatalf("%q is read by the fast way only: %v", b, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: read %+v, want %+v", b, got, want)
	}
}

// What the edge stores is read the fast way: a change of Append must not end that
// unseen.
func TestAppendIsReadTheFastWay(t *testing.T) {
	at := time.Date(2026, 11, 29, 10, 0, 0, 123456789, time.UTC)
	for _, e := range []Event{
		{ID: "e", Type: "t", Payload: jsontext.Value(`{}`), ReceivedAt: at},
		{ID: "e", Type: "t", UserID: "u", Payload: jsontext.Value(`{"a":[{}]}`), ReceivedAt: at, OccurredAt: at, SentAt: at, OriginalAt: at, Source: "s"},
	} {
		b, err := e.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, fast := decodeAppended(b)
		if !fast || !bytes.Equal(got.Payload, e.Payload) || !reflect.DeepEqual(got, e) {
			t.Errorf("fast: %v; read %+v, want %+v", fast, got, e)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	text := []byte(appended)
	for name, decode := range map[string]func([]byte) (Event, error){"as appended": Decode, "any": decodeAny} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
