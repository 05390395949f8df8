package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
)

// What an export holds is read by a reader of Parquet as it was written.
func TestParquet(t *testing.T) {
	var file bytes.Buffer
	write, end := parquetWriter(&file)
	at := time.Date(2026, 1, 31, 12, 0, 0, 123_000, time.UTC)
	const n = 2500
	for i := range n {
		h := api.HistoryItem{Seq: int64(i + 1), At: at, Type: "sent", ID: fmt.Sprint("e", i), Queue: "events", Kind: "buy", Payload: &api.Content{JSON: json.RawMessage(`{"n":1}`)}}
		if i == n-1 {
			h = api.HistoryItem{Seq: n, At: at, Type: "dead", ID: "j", Cause: &forebay.Cause{Code: "x", Message: "it broke"}, Headers: map[string]string{"a": "b"}}
		}
		if err := write(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[parquetRow](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || len(rows) != n {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	first, last := rows[0], rows[n-1]
	if first.Seq != 1 || !first.At.Equal(at) || first.ID != "e0" || string(first.Payload) != `{"n":1}` || first.Key != nil || first.Code != nil {
		t.Errorf("the first row is %+v", first)
	}
	if last.Type != "dead" || *last.Code != "x" || *last.Cause != "it broke" || *last.Headers != `{"a":"b"}` || last.Payload != nil {
		t.Errorf("the last row is %+v", last)
	}
}
