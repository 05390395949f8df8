//go:build e2e && linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// 329 real webhook payloads of GitHub, sent from a file: every one is in the
// database as it was. Sent again, nothing changes.
func TestWebhookPayloads(t *testing.T) {
	url := pgtest.Database(t)
	s := serve(t, url)
	payloads := webhooks(t)
	if len(payloads) != 329 {
		t.Fatalf("%d sample payloads, want 329", len(payloads))
	}
	var lines bytes.Buffer
	for i, p := range payloads {
		fmt.Fprintf(&lines, `{"eventType":%q,"eventId":"webhook-%03d","userId":"octocat","payload":%s}`+"\n", p.name, i, p.body)
	}
	path := filepath.Join(t.TempDir(), "webhooks.ndjson")
	if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	db := connect(t, url)
	for range 2 {
		s.mustForebay("send", path, "--url", s.url)
		all := func() bool { return db.count(`SELECT count(*) FROM events`) >= len(payloads) }
		if !eventually(t, 30*time.Second, all) {
			t.Fatalf("%d of %d payloads were written", db.count(`SELECT count(*) FROM events`), len(payloads))
		}
	}

	written := map[string][]byte{}
	rows, err := db.conn.Query(t.Context(), `SELECT event_id, payload::text FROM events`)
	if err != nil {
		t.Fatal(err)
	}
	var id string
	var payload []byte
	if _, err := pgx.ForEachRow(rows, []any{&id, &payload}, func() error {
		if written[id] != nil {
			t.Errorf("%s is there twice", id)
		}
		written[id] = bytes.Clone(payload)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i, p := range payloads {
		id := fmt.Sprintf("webhook-%03d", i)
		if !reflect.DeepEqual(decoded(t, p.body), decoded(t, written[id])) {
			t.Errorf("%s (%s) is not what was sent: %.200s", id, p.name, written[id])
		}
	}
}

type webhook struct {
	name string
	body []byte
}

func webhooks(t *testing.T) []webhook {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("node_modules", "@octokit", "webhooks-examples", "api.github.com", "index.json"))
	if err != nil {
		t.Fatalf("%v: run `make setup`", err)
	}
	var kinds []struct {
		Name     string
		Examples []json.RawMessage
	}
	if err := json.Unmarshal(raw, &kinds); err != nil {
		t.Fatal(err)
	}
	var all []webhook
	for _, k := range kinds {
		for _, example := range k.Examples {
			var one bytes.Buffer
			if err := json.Compact(&one, example); err != nil {
				t.Fatal(err)
			}
			all = append(all, webhook{k.Name, one.Bytes()})
		}
	}
	return all
}

// decoded is JSON as values, numbers as they were written.
func decoded(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Errorf("%.80s: %v", b, err)
	}
	return v
}
