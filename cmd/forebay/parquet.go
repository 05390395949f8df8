package main

import (
	"encoding/json"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/forebayhq/forebay/api"
)

// parquetRow is an item as a row of a table. Columns are only ever added.
type parquetRow struct {
	Seq     int64     `parquet:"seq,delta"`
	At      time.Time `parquet:"at,timestamp(microsecond)"`
	Type    string    `parquet:"type,dict"`
	ID      string    `parquet:"id"`
	Queue   string    `parquet:"queue,dict"`
	Kind    string    `parquet:"kind,dict"`
	Key     *string   `parquet:"key,optional"`
	Attempt int32     `parquet:"attempt"`
	State   *string   `parquet:"state,optional,dict"`
	Text    *string   `parquet:"text,optional"`
	Code    *string   `parquet:"cause_code,optional,dict"`
	Cause   *string   `parquet:"cause,optional"`
	Result  *string   `parquet:"result,optional"`
	Headers *string   `parquet:"headers,optional"` // JSON
	Payload []byte    `parquet:"payload,optional"`
}

const (
	parquetBatch = 1000
	parquetGroup = 100_000 // rows that are in memory until they are written
)

// parquetWriter writes a table, compressed with zstd.
func parquetWriter(w io.Writer) (write func(*api.HistoryItem) error, end func() error) {
	table := parquet.NewGenericWriter[parquetRow](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(parquetGroup))
	rows := make([]parquetRow, 0, parquetBatch)
	flush := func() error {
		_, err := table.Write(rows)
		rows = rows[:0]
		return err
	}
	write = func(h *api.HistoryItem) error {
		if rows = append(rows, parquetRowOf(h)); len(rows) < parquetBatch {
			return nil
		}
		return flush()
	}
	end = func() error {
		if err := flush(); err != nil {
			return err
		}
		return table.Close()
	}
	return write, end
}

func parquetRowOf(h *api.HistoryItem) parquetRow {
	some := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	row := parquetRow{
		Seq: h.Seq, At: h.At, Type: h.Type, ID: h.ID, Queue: h.Queue, Kind: h.Kind, Key: some(h.Key), Attempt: int32(h.Attempt),
		State: some(string(h.State)), Text: some(h.Text), Result: some(string(h.Result)), Payload: h.Payload.Bytes(),
	}
	if h.Cause != nil {
		row.Code, row.Cause = some(h.Cause.Code), some(h.Cause.Message)
	}
	if len(h.Headers) > 0 {
		b, _ := json.Marshal(h.Headers) // texts: it cannot fail
		row.Headers = some(string(b))
	}
	return row
}
