package report

import (
	"bufio"
	"errors"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

// kind of a cell.
type kind uint8

const (
	null kind = iota
	text
	number // a JSON number
	boolean
	raw // JSON
)

// cell is one value. Its text is valid until the next row only.
type cell struct {
	kind kind
	text []byte
}

// table takes the rows of a query.
type table interface {
	columns(names []string) error
	row(cells []cell) error
}

// format is a way to write a table.
type format struct {
	contentType string
	begin, next func(b []byte, names []string, cells []cell, first bool) []byte
	end         string
	unique      bool // names of columns
}

var formats = map[string]format{
	"csv":  {contentType: "text/csv; charset=utf-8", begin: csvHead, next: csvRow},
	"json": {contentType: "application/json", begin: jsonHead, next: jsonRow, end: "\n]\n", unique: true},
	"html": {contentType: "text/html; charset=utf-8", begin: htmlHead, next: htmlRow, end: "</tbody></table>\n"},
}

// progressEvery so many rows, progress is told.
const progressEvery = 5000

// writer writes a table in a format, within bounds.
type writer struct {
	job      *worker.Job
	format   format
	maxRows  int64
	maxBytes int64

	out   *bufio.Writer
	names []string
	line  []byte
	rows  int64
	bytes int64
}

func (w *writer) start(out io.Writer) { w.out = bufio.NewWriterSize(out, 64<<10) }

func (w *writer) write(b []byte) error {
	if w.bytes += int64(len(b)); w.bytes > w.maxBytes {
		return tooLarge("more than %d bytes", w.maxBytes)
	}
	_, err := w.out.Write(b)
	return err
}

func tooLarge(what string, args ...any) error {
	cause := forebay.Cause{Code: "too_large"}
	return forebay.Permanent(forebay.Because(cause, fmt.Errorf("the report has "+what+"; that is the most allowed", args...)))
}

func (w *writer) columns(names []string) error {
	if len(names) == 0 {
		return forebay.Permanent(forebay.Because(forebay.Cause{Code: "no_rows"}, errors.New("the query gives no rows: it is no SELECT")))
	}
	for i, name := range names {
		if w.format.unique && slices.Contains(names[:i], name) {
			return forebay.Permanent(forebay.Because(forebay.Cause{Code: "sql"}, fmt.Errorf("the query has two columns %q; an object has one", name)))
		}
	}
	w.names = names
	return w.write(w.format.begin(nil, names, nil, true))
}

func (w *writer) row(cells []cell) error {
	if w.rows++; w.rows > w.maxRows {
		return tooLarge("more than %d rows", w.maxRows)
	}
	if w.rows%progressEvery == 0 {
		w.job.Progress("rows", 0, fmt.Sprintf("%d rows", w.rows))
	}
	w.line = w.format.next(w.line[:0], w.names, cells, w.rows == 1)
	return w.write(w.line)
}

func (w *writer) end() error {
	if err := w.write([]byte(w.format.end)); err != nil {
		return err
	}
	return w.out.Flush()
}

func csvHead(b []byte, names []string, _ []cell, _ bool) []byte {
	for i, name := range names {
		b = csvText(comma(b, i), []byte(name))
	}
	return append(b, "\r\n"...)
}

func csvRow(b []byte, _ []string, cells []cell, _ bool) []byte {
	for i, c := range cells {
		b = comma(b, i)
		if c.kind == text || c.kind == raw {
			b = csvText(b, c.text)
		} else {
			b = append(b, c.text...)
		}
	}
	return append(b, "\r\n"...)
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

// csvText writes a text so that a spreadsheet takes it for nothing else: one that
// looks like a formula gets an apostrophe before it.
func csvText(b, s []byte) []byte {
	formula := len(s) > 0 && strings.IndexByte("=+-@\t\r\n", s[0]) >= 0
	if !formula && !strings.ContainsAny(string(s), ",;\"\r\n") && (len(s) == 0 || s[0] != ' ' && s[len(s)-1] != ' ') {
		return append(b, s...)
	}
	b = append(b, '"')
	if formula {
		b = append(b, '\'')
	}
	for _, c := range s {
		if c == '"' {
			b = append(b, '"')
		}
		b = append(b, c)
	}
	return append(b, '"')
}

func jsonHead(b []byte, _ []string, _ []cell, _ bool) []byte { return append(b, '[') }

// jsonRow writes an object.
func jsonRow(b []byte, names []string, cells []cell, first bool) []byte {
	if !first {
		b = append(b, ',')
	}
	b = append(b, "\n{"...)
	for i, c := range cells {
		b = append(jsonText(comma(b, i), names[i]), ':')
		switch c.kind {
		case null:
			b = append(b, "null"...)
		case text:
			b = jsonText(b, string(c.text))
		default:
			b = append(b, c.text...)
		}
	}
	return append(b, '}')
}

func jsonText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD")) // valid text always can
	return b
}

func htmlHead(b []byte, names []string, _ []cell, _ bool) []byte {
	b = append(b, "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Report</title>\n<table><thead><tr>"...)
	for _, name := range names {
		b = append(append(append(b, "<th>"...), escaped([]byte(name))...), "</th>"...)
	}
	return append(b, "</tr></thead><tbody>\n"...)
}

func htmlRow(b []byte, _ []string, cells []cell, _ bool) []byte {
	b = append(b, "<tr>"...)
	for _, c := range cells {
		b = append(append(append(b, "<td>"...), escaped(c.text)...), "</td>"...)
	}
	return append(b, "</tr>\n"...)
}

func escaped(s []byte) string { return html.EscapeString(strings.ToValidUTF8(string(s), "\uFFFD")) }
