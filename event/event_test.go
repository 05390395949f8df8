package event_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
)

var update = flag.Bool("update", false, "write golden files that do not exist yet; existing ones are kept for ever")

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}

var samples = map[string]event.Event{
	"smallest": {ID: "e1", Type: "app_open", Payload: jsontext.Value(`{}`), ReceivedAt: at("2026-11-29T10:00:00Z")},
	"whole": {
		ID: "0199a3f2-7c1e-7b51-9a07-6f5e2f1f8c11", Type: "purchase", UserID: "u\"1\\é世", Source: "ios/segment",
		Payload:    jsontext.Value(`{"total": 1e400, "note":"a<b>&c", "deep":[[{"x":null}]]}`),
		ReceivedAt: at("2026-11-29T10:00:00.123456789Z"), OccurredAt: at("2026-11-29T09:55:00Z"),
		SentAt: at("2026-11-29T09:59:59.5Z"), OriginalAt: at("2016-11-29T09:55:00Z"),
	},
}

// The golden files are what the queues of users hold: whatever changes in
// Append, Decode must go on reading them to the same event.
func TestGoldenFilesAreReadForEver(t *testing.T) {
	for name, want := range samples {
		path := filepath.Join("testdata", "golden", "v1-"+name+".json")
		b, err := os.ReadFile(path)
		if os.IsNotExist(err) && *update {
			if b, err = want.Append(nil); err == nil {
				err = os.WriteFile(path, b, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := event.Decode(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read %+v, want %+v", name, got, want)
		}
		if again, _ := want.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("%s: Append writes %s, the golden file has %s; a new form needs a new file", name, again, b)
		}
	}
}

func TestAppendRefusesTextThatIsNotUTF8(t *testing.T) {
	e := samples["smallest"]
	e.UserID = "\xff"
	if _, err := e.Append(nil); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Fatalf("got %v, want code invalid", err)
	}
}

func TestDecodeIgnoresUnknownMembersAndRefusesDamage(t *testing.T) {
	e, err := event.Decode([]byte(`{"eventId":"e","eventType":"t","payload":{"a":1},"receivedAt":"2026-01-02T03:04:05Z","new":{"x":[1]}}`))
	if err != nil || e.ID != "e" || string(e.Payload) != `{"a":1}` {
		t.Fatalf("got %+v, %v", e, err)
	}
	for _, bad := range []string{``, `{`, `[]`, `{"eventId":1}`, `{"receivedAt":"yesterday"}`, `{"eventId":"a","eventId":"b"}`} {
		if _, err := event.Decode([]byte(bad)); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("%q: got %v, want code invalid", bad, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, e := range samples {
		b, _ := e.Append(nil)
		f.Add(b)
	}
	f.Add([]byte(`{"eventId":"\ud800","payload":{}}`))
	f.Add([]byte(strings.Repeat(`{"payload":`, 100)))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := event.Decode(b)
		if err != nil || e.Payload == nil {
			return
		}
		out, err := e.Append(nil)
		if err != nil {
			t.Fatalf("decoded %q but cannot append it: %v", b, err)
		}
		again, err := event.Decode(out)
		if err != nil {
			t.Fatalf("cannot read back %q: %v", out, err)
		}
		if again.ID != e.ID || !bytes.Equal(again.Payload, e.Payload) || !utf8.Valid(out) || !again.ReceivedAt.Equal(e.ReceivedAt) {
			t.Fatalf("changed on the way: %+v, then %+v", e, again)
		}
	})
}
