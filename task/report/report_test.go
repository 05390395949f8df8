package report_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/internal/pgtest"
	"github.com/forebayhq/forebay/storage"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/task/report"
	"github.com/forebayhq/forebay/worker"
)

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func TestMain(m *testing.M) { pgtest.Main(m) }

func files(t *testing.T) *storage.Store {
	t.Helper()
	s, err := storage.Open(t.Context(), storage.Config{Address: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// rows are what both databases answer, with the same query.
const rows = `SELECT * FROM (VALUES
	(1, 1.5, 'plain', 'a'),
	(-2, NULL, '=cmd|x', 'b'),
	(3, 0.25, '-5', '@a'),
	(4, 2.25, '<b>"q", Ü</b>', '+1'),
	(5, 3.5, ' a;b' , 'x
y')) AS t WHERE 1 = $1 AND $2 <> ''`

type made struct {
	h   *task.Mux
	s   *storage.Store
	log []string
	mu  sync.Mutex
}

func open(t *testing.T, cfg report.Config) *made {
	t.Helper()
	m := &made{h: new(task.Mux)}
	if cfg.Store == nil {
		m.s = files(t)
		cfg.Store = m.s
	}
	h, err := report.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.Register(m.h)
	return m
}

func (m *made) run(ctx context.Context, id, data string) (report.Made, error) {
	j := worker.NewJob(forebay.Delivery{Message: forebay.Message{ID: id, Kind: "report", Payload: []byte(data)}}, func(p *forebay.Progress, _ *forebay.LogLine) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if p != nil {
			m.log = append(m.log, p.Message)
		}
	})
	var r report.Made
	result, err := m.h.HandleJob(ctx, j)
	if err == nil {
		err = json.Unmarshal(result, &r)
	}
	return r, err
}

func (m *made) text(t *testing.T, url string) string {
	t.Helper()
	name, ok := m.s.NameOf(url)
	if !ok {
		t.Fatalf("%s is no name of the storage", url)
	}
	r, o, err := m.s.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return o.ContentType + "\n" + string(b)
}

// lite makes an SQLite file.
func lite(t *testing.T, sql string) string {
	t.Helper()
	path := t.TempDir() + "/events.db"
	c, err := sqlite.OpenConn(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sqlitex.ExecuteScript(c, sql, nil), c.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFormats(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"csv": "text/csv; charset=utf-8\n" + "id,share,\"'=name\",note\r\n1,1.5,plain,a\r\n-2,,\"'=cmd|x\",b\r\n3,0.25,\"'-5\",\"'@a\"\r\n4,2.25,\"<b>\"\"q\"\", Ü</b>\",\"'+1\"\r\n5,3.5,\" a;b\",\"x\ny\"\r\n",
		"json": `application/json
[
{"id":1,"share":1.5,"=name":"plain","note":"a"},
{"id":-2,"share":null,"=name":"=cmd|x","note":"b"},
{"id":3,"share":0.25,"=name":"-5","note":"@a"},
{"id":4,"share":2.25,"=name":"<b>\"q\", Ü</b>","note":"+1"},
{"id":5,"share":3.5,"=name":" a;b","note":"x\ny"}
]
`,
		"html": `text/html; charset=utf-8
<!doctype html>
<meta charset="utf-8">
<title>Report</title>
<table><thead><tr><th>id</th><th>share</th><th>=name</th><th>note</th></tr></thead><tbody>
<tr><td>1</td><td>1.5</td><td>plain</td><td>a</td></tr>
<tr><td>-2</td><td></td><td>=cmd|x</td><td>b</td></tr>
<tr><td>3</td><td>0.25</td><td>-5</td><td>@a</td></tr>
<tr><td>4</td><td>2.25</td><td>&lt;b&gt;&#34;q&#34;, Ü&lt;/b&gt;</td><td>+1</td></tr>
<tr><td>5</td><td>3.5</td><td> a;b</td><td>x
y</td></tr>
</tbody></table>
`,
	}
	query := strings.Replace(rows, "SELECT *", `SELECT column1 AS id, column2 AS share, column3 AS "=name", column4 AS note`, 1)
	m := open(t, report.Config{Reports: map[string]report.Report{
		"pg":     {Query: query, Params: []string{"one:int", "name:text"}, URL: pgtest.Database(t)},
		"sqlite": {Query: query, Params: []string{"one:int", "name:text"}, URL: lite(t, "")},
	}})
	for _, name := range []string{"pg", "sqlite"} {
		for format, text := range want {
			r, err := m.run(t.Context(), name+"-"+format, fmt.Sprintf(`{"report":%q,"format":%q,"params":{"one":1,"name":"x' OR 1=1 --"}}`, name, format))
			if err != nil {
				t.Errorf("%s %s: %v", name, format, err)
				continue
			}
			// Nobody guesses it from the job's id.
			if !regexp.MustCompile("^/files/reports/" + name + "-" + format + "-[a-z0-9]{26}[.]" + format + "$").MatchString(r.URL) {
				t.Errorf("%s %s: url %s", name, format, r.URL)
			}
			got := m.text(t, r.URL)
			if got != text || r.Rows != 5 || r.Format != format || r.Bytes != int64(len(got)-strings.Index(got, "\n")-1) {
				t.Errorf("%s %s: %+v\n%s\nwant\n%s", name, format, r, got, text)
			}
			if format == "csv" {
				if all, err := csv.NewReader(strings.NewReader(got[strings.Index(got, "\n")+1:])).ReadAll(); err != nil || len(all) != 6 {
					t.Errorf("%s: a reader of CSV finds %d lines, %v", name, len(all), err)
				}
			}
		}
	}
}

func TestTypesOfPostgres(t *testing.T) {
	t.Parallel()
	m := open(t, report.Config{Reports: map[string]report.Report{"types": {
		Query: `SELECT $1::date AS d, $2::timestamptz AS t, $3::bool AS b, $4::float8 AS f, $5::text AS s, 'NaN'::numeric AS nan,
			'{"a":[1]}'::jsonb AS j, ARRAY[1,2] AS arr, '\x0102'::bytea AS bytes, 12345678901234567890.12::numeric AS n`,
		Params: []string{"d:date", "t:time", "b:bool", "f:float", "s:text"}, URL: pgtest.Database(t),
	}}})
	r, err := m.run(t.Context(), "1", `{"report":"types","format":"json","params":{"d":"2026-05-04","t":"2026-05-04T05:02:01+02:00","b":true,"f":1.5,"s":null}}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	_, text, _ := strings.Cut(m.text(t, r.URL), "\n")
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err, text)
	}
	for _, want := range []string{`"d":"2026-05-04"`, `"t":"2026-05-04 03:02:01+00"`, `"b":true`, `"f":1.5`, `"s":null`, `"nan":"NaN"`, `"j":{"a": [1]}`, `"arr":"{1,2}"`, `"bytes":"\\x0102"`, `"n":12345678901234567890.12`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
}

// A million rows go through, and never lie in memory.
func TestAReportIsNeverWholeInMemory(t *testing.T) {
	const allowed = 48 << 20
	sink := &counting{}
	m := open(t, report.Config{Store: sink, Reports: map[string]report.Report{
		"pg": {Query: `SELECT generate_series(1, 1000000) AS i, md5('x') AS h, repeat('x', 100) AS x`, URL: pgtest.Database(t)},
		"sqlite": {
			Query: `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 30000) SELECT i, hex(i) AS h, printf('%.100c', 'x') AS x FROM n`,
			URL:   lite(t, ""),
		},
	}})
	for name, total := range map[string]int64{"pg": 1_000_000, "sqlite": 30_000} { // SQLite in Go is slow under the race detector
		*sink = counting{}
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		r, err := m.run(t.Context(), "1", `{"report":"`+name+`"}`)
		if err != nil || r.Rows != total || r.Bytes != sink.bytes || sink.lines != int(total)+1 {
			t.Errorf("%s: %+v, %v; stored %d bytes, %d lines", name, r, err, sink.bytes, sink.lines)
		}
		if sink.most > before.HeapAlloc+allowed {
			t.Errorf("%s: %d MiB of heap at most, %d before", name, sink.most>>20, before.HeapAlloc>>20)
		}
		m.mu.Lock()
		if n := len(m.log); n < int(total/5000) || m.log[n-1] != fmt.Sprint(total, " rows") {
			t.Errorf("%s: progress was told %d times", name, n)
		}
		m.mu.Unlock()
		t.Logf("%s: %d MiB in %s, heap %d MiB at most (%d before)", name, r.Bytes>>20, time.Since(began).Round(time.Millisecond), sink.most>>20, before.HeapAlloc>>20)
	}
}

// counting reads a report as a bucket would, and looks at the memory meanwhile.
type counting struct {
	bytes int64
	lines int
	most  uint64
}

func (c *counting) Put(_ context.Context, name, contentType string, r io.Reader, _ int64) (storage.Object, error) {
	buf := make([]byte, 256<<10)
	for i := 0; ; i++ {
		n, err := r.Read(buf)
		c.bytes += int64(n)
		c.lines += bytes.Count(buf[:n], []byte("\n"))
		if i%20 == 0 {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			c.most = max(c.most, now.HeapAlloc)
		}
		if err == io.EOF {
			return storage.Object{Name: name}, nil
		}
		if err != nil {
			return storage.Object{}, err
		}
	}
}

func (c *counting) URL(name string) string { return "/files/" + name }

func TestWhatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	pg := pgtest.Database(t)
	path := lite(t, "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
	gone, err := pgtest.Shared(t).Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone = strings.Replace(gone, ":"+pgtest.Shared(t).Password()+"@", ":wrong@", 1)
	m := open(t, report.Config{MaxRows: 100, MaxBytes: 5000, Timeout: 300 * time.Millisecond, Reports: map[string]report.Report{
		"rows":      {Query: "SELECT generate_series(1, 101)", URL: pg},
		"bytes":     {Query: "SELECT repeat('x', 1000) FROM generate_series(1, 50)", URL: pg},
		"slow":      {Query: "SELECT pg_sleep(100)", URL: pg},
		"late":      {Query: "SELECT 1/(50-i) FROM generate_series(1, 60) AS i", URL: pg},
		"writes":    {Query: "CREATE TABLE t (a int)", URL: pg},
		"writes2":   {Query: "WITH x AS (DELETE FROM pg_class RETURNING 1) SELECT * FROM x", URL: pg},
		"wrong":     {Query: "SELECT nothing FROM nowhere", URL: pg},
		"many":      {Query: "SELECT 1; SELECT 2", URL: pg},
		"params":    {Query: "SELECT $1::int + $2::int", Params: []string{"a:int"}, URL: pg},
		"away":      {Query: "SELECT 1", URL: gone},
		"l-rows":    {Query: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n", URL: path},
		"l-slow":    {Query: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n", URL: path},
		"l-writes":  {Query: "DELETE FROM t RETURNING a", URL: path},
		"l-writes2": {Query: "DROP TABLE t", URL: path},
		"l-wrong":   {Query: "SELECT nothing", URL: path},
		"l-many":    {Query: "SELECT 1; SELECT 2", URL: path},
		"l-params":  {Query: "SELECT $1, $2", Params: []string{"a:int"}, URL: path},
		"l-away":    {Query: "SELECT 1", URL: path + ".not"},
	}})
	for name, c := range map[string]struct {
		code      string
		permanent bool
	}{
		"rows": {"too_large", true}, "bytes": {"too_large", true}, "slow": {"57014", false}, "late": {"22012", true},
		"writes": {"25006", true}, "writes2": {"25006", true}, "wrong": {"42P01", true}, "many": {"42601", true},
		"params": {"database", false}, "away": {"unreachable", false},
		"l-rows": {"too_large", true}, "l-slow": {"timeout", false}, "l-writes": {"sqlite_8", true}, "l-writes2": {"no_rows", true},
		"l-wrong": {"sqlite_1", true}, "l-many": {"sql", true}, "l-params": {"sql", true}, "l-away": {"sqlite_14", false},
	} {
		data := `{"report":"` + name + `"}`
		if strings.HasSuffix(name, "params") {
			data = `{"report":"` + name + `","params":{"a":1}}`
		}
		_, err := m.run(t.Context(), name, data)
		cause := forebay.CauseOf(err, at)
		if err == nil || cause.Code != c.code || forebay.IsPermanent(err) != c.permanent {
			t.Errorf("%s: %v, permanent %t, cause %+v", name, err, forebay.IsPermanent(err), cause)
		}
		if err != nil && (strings.Contains(err.Error(), "wrong@") || strings.Contains(err.Error(), pgtest.Shared(t).Password())) {
			t.Errorf("%s: a password is in %v", name, err)
		}
	}
	for o, err := range m.s.List(t.Context(), "") {
		t.Errorf("left behind: %s, %v", o.Name, err)
	}
}

// failing is a storage that is full.
type failing struct{ counting }

func (*failing) Put(_ context.Context, _, _ string, r io.Reader, _ int64) (storage.Object, error) {
	r.Read(make([]byte, 10))
	return storage.Object{}, forebay.Errorf(forebay.CodeFull, "disk", "no room")
}

func TestAReportEndsWithTheStorageAndOnRequest(t *testing.T) {
	t.Parallel()
	endless := "SELECT generate_series(1, 1000000000)"
	pg := pgtest.Database(t)
	m := open(t, report.Config{Store: &failing{}, Reports: map[string]report.Report{"endless": {Query: endless, URL: pg}}})
	if _, err := m.run(t.Context(), "1", `{"report":"endless"}`); forebay.CodeOf(err) != forebay.CodeFull {
		t.Errorf("a full storage: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	m = open(t, report.Config{Reports: map[string]report.Report{"endless": {Query: endless, URL: pg}, "sleep": {Query: "SELECT pg_sleep(100)", URL: pg}}})
	time.AfterFunc(50*time.Millisecond, func() { cancel(forebay.ErrCancelled) })
	for _, name := range []string{"endless", "sleep"} {
		if _, err := m.run(ctx, "1", `{"report":"`+name+`"}`); !errors.Is(err, forebay.ErrCancelled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for o := range m.s.List(t.Context(), "") {
		t.Errorf("left behind: %s", o.Name)
	}
}

func TestBadDataIsADeadLetter(t *testing.T) {
	t.Parallel()
	m := open(t, report.Config{Reports: map[string]report.Report{"r": {
		Query: "SELECT $1, $2, $3, $4, $5, $6", URL: lite(t, ""),
		Params: []string{"t:text", "i:int", "f:float", "b:bool", "d:date", "at:time"},
	}}})
	good := map[string]any{"t": "x", "i": 1, "f": 1.5, "b": true, "d": "2026-05-04", "at": "2026-05-04T03:02:01Z"}
	run := func(name string, value any, more map[string]any) error {
		params := map[string]any{}
		for k, v := range good {
			params[k] = v
		}
		params[name] = value
		if value == "none" {
			delete(params, name)
		}
		data := map[string]any{"report": "r", "params": params}
		for k, v := range more {
			data[k] = v
		}
		b, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.run(t.Context(), "1", string(b))
		return err
	}
	if err := run("t", nil, nil); err != nil {
		t.Errorf("good data: %v", err)
	}
	for _, c := range []struct {
		name  string
		value any
	}{
		{"t", 1}, {"t", "a\x00b"}, {"t", strings.Repeat("x", 65<<10)}, {"t", []any{}}, {"i", 1.5}, {"i", "1"}, {"i", 1e300}, {"f", "1"}, {"b", 1},
		{"d", "04.05.2026"}, {"d", "2026-02-30"}, {"d", 1}, {"at", "2026-05-04"}, {"at", 5}, {"i", "none"},
	} {
		err := run(c.name, c.value, nil)
		cause := forebay.CauseOf(err, at)
		if !forebay.IsPermanent(err) || cause.Code != "bad_data" || cause.Detail["field"] != "params."+c.name {
			t.Errorf("%s %.30v: %v", c.name, c.value, err)
		}
	}
	for field, more := range map[string]map[string]any{
		"report": {"report": "x"}, "format": {"format": "xlsx"}, "params": {"params": map[string]any{"t": "", "i": 1, "f": 1, "b": true, "d": nil, "at": nil, "x": 1}},
	} {
		if err := run("t", "x", more); !forebay.IsPermanent(err) || forebay.CauseOf(err, at).Detail["field"] != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestWrongSettingsAreRefusedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := report.New(report.Config{MaxRows: -1, MaxBytes: -1, Timeout: -1, Reports: map[string]report.Report{
		"a": {URL: "mysql://u:hunter2@h/d", Params: []string{"x", "y:money", ":int", "a b:int"}},
		"b": {Query: "SELECT 1", URL: "postgres://u:hunter2@h:port/d"},
		"c": {Query: "SELECT 1"},
	}})
	for _, field := range []string{"store", "maxRows", "maxBytes", "timeout", "reports.a.query", "reports.a.url", "reports.a.params.0", "reports.a.params.1",
		"reports.a.params.2", "reports.a.params.3", "reports.b.url", "reports.c.url"} {
		if err == nil || !strings.Contains(err.Error(), "("+field+")") {
			t.Errorf("%s is missing in %v", field, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password is in %v", err)
	}
}
