// Package report has the handler of reports: a query that the operator named, with
// parameters that a job gives, to a file of CSV, JSON or HTML in the storage.
//
//	data    {"report":"signups","format":"csv","params":{"since":"2026-01-01"}}
//	result  {"url":…,"rows":…,"bytes":…,"format":"csv"}
//
// It promises: rows go from the database to the storage one by one, and never lie
// in memory as a whole; a job's words are parameters of the query and never part of
// it; the database is asked in a transaction that only reads, for a bounded time;
// no cell of text is a formula for a spreadsheet or markup for a browser.
//
// It refuses SQL from a job, and to keep half a report: one that fails, or is
// larger than allowed, leaves nothing.
package report

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/storage"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

// Kind of the job that Register would use.
const Kind = "report"

// Store keeps reports (storage.Store). A Put whose reader fails keeps nothing.
type Store interface {
	Put(ctx context.Context, name, contentType string, r io.Reader, most int64) (storage.Object, error)
	URL(name string) string
}

// Config of a Handler. Store and Reports are needed.
type Config struct {
	Store    Store
	Reports  map[string]Report // by name
	MaxRows  int64             // of one report; 0: 10 million
	MaxBytes int64             // 0: 1 GiB
	Timeout  time.Duration     // of the query; 0: 10 min
}

// Report is one named query.
type Report struct {
	Query  string   // its parameters are $1, $2 … in the order of Params
	Params []string // each name:type; text, int, float, bool, date (2026-05-04) or time (RFC 3339)
	URL    string   // postgres://…, or the path of an SQLite file
}

// Handler makes reports.
type Handler struct {
	cfg     Config
	reports map[string]report
}

// report is one that has been checked.
type report struct {
	query  string
	params []param
	open   func(ctx context.Context, query string, args []any, timeout time.Duration, to table) error
}

// New makes a handler. Every problem of cfg is reported at once.
func New(cfg Config) (*Handler, error) {
	fill(&cfg.MaxRows, 10_000_000)
	fill(&cfg.MaxBytes, 1<<30)
	fill(&cfg.Timeout, 10*time.Minute)
	h := &Handler{cfg: cfg, reports: map[string]report{}}
	var problems []error
	wrong := func(bad bool, field, format string, args ...any) {
		if bad {
			problems = append(problems, invalid(field, format, args...))
		}
	}
	wrong(cfg.Store == nil, "store", "no storage is given")
	wrong(cfg.MaxRows < 0, "maxRows", "%d; more than 0 is allowed", cfg.MaxRows)
	wrong(cfg.MaxBytes < 0, "maxBytes", "%d; more than 0 is allowed", cfg.MaxBytes)
	wrong(cfg.Timeout < time.Millisecond, "timeout", "%s; more than 0 is allowed", cfg.Timeout)
	for name, r := range cfg.Reports {
		at := "reports." + name
		wrong(strings.TrimSpace(r.Query) == "", at+".query", "there is no query")
		checked := report{query: r.Query}
		for i, text := range r.Params {
			p, err := parseParam(text)
			wrong(err != nil, fmt.Sprintf("%s.params.%d", at, i), "%q: %v", text, err)
			checked.params = append(checked.params, p)
		}
		var err error
		if checked.open, err = opener(r.URL); err != nil {
			problems = append(problems, invalid(at+".url", "%v", err))
		}
		h.reports[name] = checked
	}
	return h, errors.Join(problems...)
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func invalid(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "report", format, args...)
	e.Field = field
	return e
}

// opener finds the kind of database by its address, which is never shown: it may
// hold a password.
func opener(address string) (func(context.Context, string, []any, time.Duration, table) error, error) {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return nil, errors.New("no database is named")
	case err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql"):
		return postgres(address)
	case err == nil && (u.Scheme == "" || u.Scheme == "sqlite" || u.Scheme == "file"):
		path := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(address, "sqlite:"), "file:"), "//")
		return sqliteFile(path), nil
	}
	return nil, errors.New("it is neither postgres://… nor the path of an SQLite file")
}

// Register adds the handler to a mux.
func (h *Handler) Register(mux *task.Mux) {
	mux.Handle(Kind, task.Func(h.make))
	mux.Describe(Kind, task.About{Title: "Make a report", Description: "A file of what a named query gives.", Data: h.takes(), Result: []byte(gives)})
}

const gives = `{"type":"object","properties":{"url":{"type":"string"},"rows":{"type":"integer"},"bytes":{"type":"integer"},"format":{"type":"string"}}}`

// takes is the schema of a job's data, with the reports that there are.
func (h *Handler) takes() []byte {
	names := slices.Sorted(maps.Keys(h.reports))
	list, err := json.Marshal(names)
	if err != nil || len(names) == 0 {
		list = []byte(`[""]`)
	}
	return fmt.Appendf(nil, `{"type":"object","required":["report"],"properties":{
 "report":{"title":"Report","enum":%s},
 "format":{"title":"Format","enum":["csv","json","html"],"default":"csv"},
 "params":{"type":"object","title":"Parameters"}}}`, list)
}

type request struct {
	Report string         `json:"report"`
	Format string         `json:"format"`
	Params map[string]any `json:"params"`
}

// Made is the result of a report.
type Made struct {
	URL    string `json:"url"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	Format string `json:"format"`
}

func (h *Handler) make(ctx context.Context, j *worker.Job, r request) (Made, error) {
	one, ok := h.reports[r.Report]
	if !ok {
		return Made{}, task.BadData("report", "there is no report %.80q; there are: %s", r.Report, strings.Join(slices.Sorted(maps.Keys(h.reports)), ", "))
	}
	if r.Format == "" {
		r.Format = "csv"
	}
	format, ok := formats[r.Format]
	if !ok {
		return Made{}, task.BadData("format", "%.20q; csv, json and html are allowed", r.Format)
	}
	args, err := arguments(one.params, r.Params)
	if err != nil {
		return Made{}, err
	}
	name, err := nameOf(ctx, j, r.Format)
	if err != nil {
		return Made{}, err
	}
	w := &writer{job: j, format: format, maxRows: h.cfg.MaxRows, maxBytes: h.cfg.MaxBytes}
	if err := h.run(ctx, one, args, name, w); err != nil {
		return Made{}, err
	}
	j.Progress("done", 100, fmt.Sprintf("%d rows", w.rows))
	return Made{URL: h.cfg.Store.URL(name), Rows: w.rows, Bytes: w.bytes, Format: r.Format}, nil
}

// nameOf gives the name of a job's report: the same in every attempt where the
// engine can remember it, and not to be guessed, since who knows it may read it.
func nameOf(ctx context.Context, j *worker.Job, format string) (string, error) {
	secret, err := j.Once(ctx, "name", func(context.Context) ([]byte, error) { return []byte(strings.ToLower(rand.Text())), nil })
	if forebay.CodeOf(err) == forebay.CodeUnsupported {
		secret, err = []byte(strings.ToLower(rand.Text())), nil
	}
	return fmt.Sprintf("reports/%s-%s.%s", storage.Segment(j.Key()), secret, format), err
}

// run lets the query write one end of a pipe, and the storage read the other one.
// Whichever fails ends the other.
func (h *Handler) run(ctx context.Context, one report, args []any, name string, w *writer) error {
	r, out := io.Pipe()
	asking, stop := context.WithCancel(ctx)
	defer stop()
	asked := make(chan error, 1)
	go func() {
		w.start(out)
		err := one.open(asking, one.query, args, h.cfg.Timeout, w)
		if err == nil {
			err = w.end()
		}
		out.CloseWithError(err) // nil is the end of the file
		asked <- err
	}()
	_, stored := h.cfg.Store.Put(ctx, name, w.format.contentType, r, h.cfg.MaxBytes)
	r.CloseWithError(errStored)
	if stored != nil {
		stop()
	}
	err := <-asked
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && (stored == nil || !errors.Is(err, errStored) && !errors.Is(err, context.Canceled)):
		return err
	}
	return stored
}

// errStored is what a query meets that goes on when the storage has ended.
var errStored = errors.New("report: the storage takes no more")
