package ingest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/ingest"
)

const purchaseSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "required": ["total", "currency"],
  "properties": {
    "total": {"type": "number", "minimum": 0},
    "currency": {"enum": ["EUR", "USD"]},
    "at": {"type": "string", "format": "date-time"},
    "lines": {"type": "array", "items": {"$ref": "line.json"}}
  }
}`

func schemaDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var goodSchemas = map[string]string{
	"purchase.json":          purchaseSchema,
	"line.json":              `{"type":"object","required":["sku"]}`,
	"Order%2FCompleted.json": `{"required":["total"]}`,
	"com.example.json":       `{"type":"array"}`,
	"README.md":              "not a schema",
}

func withSchemas(t *testing.T, mode ingest.Mode) *rig {
	t.Helper()
	schemas, err := ingest.LoadSchemas(schemaDir(t, goodSchemas), mode)
	if err != nil {
		t.Fatal(err)
	}
	return newRig(t, func(c *ingest.Config) { c.Schemas = schemas })
}

func TestSchemasJudgeWhatEventsCarry(t *testing.T) {
	for _, c := range []struct{ name, path, event, pointer string }{
		{"good", "/ingest/batch", `{"eventType":"purchase","payload":{"total":5,"currency":"EUR","lines":[{"sku":"a"}]}}`, ""},
		{"no schema", "/ingest/batch", `{"eventType":"other","payload":{"total":"x"}}`, ""},
		{"missing", "/ingest/batch", `{"eventType":"purchase","payload":{"total":5}}`, "/payload"},
		{"below", "/ingest/batch", `{"eventType":"purchase","payload":{"total":-1,"currency":"EUR"}}`, "/payload/total"},
		{"in another file", "/ingest/batch", `{"eventType":"purchase","payload":{"total":1,"currency":"EUR","lines":[{"sku":"a"},{}]}}`, "/payload/lines/1"},
		{"format", "/ingest/batch", `{"eventType":"purchase","payload":{"total":1,"currency":"EUR","at":"noon"}}`, "/payload/at"},
		{"huge number", "/ingest/batch", `{"eventType":"purchase","payload":{"total":-1e400,"currency":"EUR"}}`, "/payload/total"},
		{"segment", "/v1/batch", `{"type":"track","event":"Order/Completed","properties":{}}`, "/properties"},
		{"segment without properties", "/v1/batch", `{"type":"track","event":"Order/Completed"}`, "/properties"},
		{"cloudevent", "/ingest/batch", `{"specversion":"1.0","id":"1","source":"s","type":"com.example","data":{}}`, "/data"},
		{"cloudevent that is good", "/ingest/batch", `{"specversion":"1.0","id":"1","source":"s","type":"com.example","data":[]}`, ""},
	} {
		r := withSchemas(t, ingest.Enforce)
		_, answer := r.post(c.path, `{"batch":[`+c.event+`]}`)
		rows := r.badRows()
		switch {
		case c.pointer == "" && (len(rows) > 0 || len(r.queue.msgs) != 1):
			t.Errorf("%s: %s", c.name, answer)
		case c.pointer != "" && (len(rows) != 1 || len(r.queue.msgs) != 0 || rows[0].Code != "schema_violation" || rows[0].Pointer != c.pointer):
			t.Errorf("%s: %s %+v, want a violation at %s", c.name, answer, rows, c.pointer)
		}
	}
}

func TestAViolationListsAllProblems(t *testing.T) {
	r := withSchemas(t, ingest.Enforce)
	_, answer := r.post("/ingest/event", `{"eventType":"purchase","payload":{"total":"5","currency":"GBP","at":1}}`)
	for _, want := range []string{"/payload/at", "/payload/currency", "/payload/total"} {
		if !strings.Contains(answer, want) {
			t.Errorf("%s does not name %s", answer, want)
		}
	}
}

func TestWarnAcceptsAndSaysSo(t *testing.T) {
	r := withSchemas(t, ingest.Warn)
	status, answer := r.post("/ingest/event", `{"eventType":"purchase","payload":{"total":5},"eventId":"1"}`)
	if status != 202 || len(r.queue.msgs) != 1 || !strings.HasPrefix(answer, `{"messageId":"1","results":[{"index":0,"id":"1","status":"accepted","code":"schema_warning","pointer":"/payload"`) {
		t.Errorf("got %d %s", status, answer)
	}
}

func TestLoadSchemasNamesAllProblemsAtOnce(t *testing.T) {
	if s, err := ingest.LoadSchemas("does-not-exist", ingest.Off); s != nil || err != nil {
		t.Errorf("off: %v, %v", s, err)
	}
	dir := schemaDir(t, map[string]string{
		"a.json": `{"type":"objekt"}`, "b.json": `{`, "c.json": `{"$ref":"https://example.com/x.json"}`,
		"d.json": `{"$ref":"../outside.json"}`, "e.json": `{"$ref":"missing.json"}`, "f%zz.json": `{}`, "good.json": `{}`,
	})
	_, err := ingest.LoadSchemas(dir, ingest.Warn)
	if forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"a.json", "b.json", "c.json", "d.json", "outside", "e.json", "f%zz.json"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "good.json") {
		t.Errorf("%v names a good one", err)
	}
	for _, mode := range []ingest.Mode{"", "on"} {
		if _, err := ingest.LoadSchemas(dir, mode); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("mode %q: %v", mode, err)
		}
	}
	if _, err := ingest.LoadSchemas(filepath.Join(dir, "none"), ingest.Enforce); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Errorf("no folder: %v", err)
	}
}
