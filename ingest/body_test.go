package ingest_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/forebayhq/forebay/ingest"
)

func gzipped(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstded(t testing.TB, s string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return string(w.EncodeAll([]byte(s), nil))
}

// events is a JSON array of so many events of about so many bytes each.
func events(n, size int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"eventType":"a","payload":{"i":%d,"pad":"%s"}}`, i, strings.Repeat("x", size))
	}
	b.WriteByte(']')
	return b.String()
}

func TestBodiesAreWhatTheirBytesSay(t *testing.T) {
	batch := events(3, 10)
	bomb := `[{"eventType":"a","payload":{"pad":"` + strings.Repeat("0", 20<<20) + `"}}]`
	mixed := events(2000, 1000)
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		says       string
	}{
		{"gzip", gzipped(t, batch), nil, 202, `"accepted":3`},
		{"gzip that calls itself a form", gzipped(t, batch), []string{"Content-Type: application/x-www-form-urlencoded"}, 202, `"accepted":3`},
		{"gzip that calls itself zstd", gzipped(t, batch), []string{"Content-Encoding: zstd"}, 202, `"accepted":3`},
		{"gzip of two members", gzipped(t, batch[:20]) + gzipped(t, batch[20:]), nil, 202, `"accepted":3`},
		{"zstd", zstded(t, batch), []string{"Content-Encoding: zstd"}, 202, `"accepted":3`},
		{"plain that calls itself gzip", batch, []string{"Content-Encoding: gzip"}, 202, `"accepted":3`},
		{"byte order mark", "\xef\xbb\xbf" + batch, nil, 202, `"accepted":3`},
		{"space around", "\r\n\t " + batch + "\n\n", nil, 202, `"accepted":3`},
		{"lines that end like DOS", "{\"eventType\":\"a\",\"payload\":{}}\r\n{\"eventType\":\"a\",\"payload\":{}}\r\n", nil, 202, `"accepted":2`},
		{"much that packs well", gzipped(t, mixed), nil, 202, `"accepted":2000`},
		{"gzip in gzip", gzipped(t, gzipped(t, batch)), nil, 400, "not JSON"},
		{"truncated gzip", gzipped(t, batch)[:40], nil, 400, "damaged or ends early"},
		{"gzip without its checksum", gzipped(t, batch)[:len(gzipped(t, batch))-4], nil, 400, "damaged or ends early"},
		{"gzip header only", "\x1f\x8b", nil, 400, "damaged or ends early"},
		{"truncated zstd", zstded(t, batch)[:20], nil, 400, "damaged or ends early"},
		{"zstd magic only", "\x28\xb5\x2f\xfd", nil, 400, "damaged or ends early"},
		{"gzip bomb", gzipped(t, bomb), nil, 413, "decoded_too_large"},
		{"zstd bomb", zstded(t, bomb), nil, 413, "decoded_too_large"},
		{"bomb below the size", gzipped(t, `[`+strings.Repeat(" ", 3<<20)+`]`), nil, 413, "grows more than 200 times"},
		{"501 KB", events(1, 501_000), nil, 413, "body_too_large"},
		{"just below", events(5, 99_900), nil, 202, `"accepted":5`},
		{"too many", "[" + strings.TrimSuffix(strings.Repeat("1,", 2501), ",") + "]", nil, 413, "too_many_events"},
		{"too many lines", strings.Repeat("{}\n", 2501), nil, 413, "too_many_events"},
		{"as many as allowed", "[" + strings.TrimSuffix(strings.Repeat("1,", 2500), ",") + "]", nil, 202, `"rejected":2500`},
		{"deflate", "x\x9c", []string{"Content-Encoding: deflate"}, 415, "unsupported_encoding"},
		{"two batches", `{"batch":` + batch + `,"batch":` + batch + `}`, nil, 400, "twice"},
		{"form", "data=eyJ9", nil, 400, "not JSON"},
		{"only space", "  \n ", nil, 400, "empty"},
	} {
		r := newRig(t, nil)
		status, answer := r.post("/ingest/batch", c.body, c.headers...)
		if status != c.status || !strings.Contains(answer, c.says) {
			t.Errorf("%s: got %d %.300s, want %d with %s", c.name, status, answer, c.status, c.says)
		}
		if status >= 400 && (len(r.queue.msgs) > 0 || len(r.badRows()) > 0) {
			t.Errorf("%s: was refused and left something behind", c.name)
		}
	}
}

func TestLimitsOfOneEventCostOnlyThatEvent(t *testing.T) {
	deep := func(n int) string {
		return `{"eventType":"a","payload":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + `}`
	}
	many := `{"eventType":"a","payload":{}` + strings.Repeat(`,"m":1`, 1) + `}`
	for i := range 1000 {
		many = strings.Replace(many, `"payload"`, fmt.Sprintf(`"m%d":1,"payload"`, i), 1)
	}
	for _, c := range []struct{ name, event, code string }{
		{"large", `{"eventType":"a","payload":{"pad":"` + strings.Repeat("x", 256<<10) + `"}}`, "too_large"},
		{"large once repaired", `{"eventType":"a","payload":{"pad":"` + strings.Repeat("\xff", 200<<10) + `"}}`, "too_large"},
		{"as deep as allowed", deep(99), ""},
		{"deeper", deep(100), "too_deep"},
		{"nesting of 10,000", deep(10_000), "too_deep"},
		{"nesting of 40,000", deep(40_000), "too_deep"},
		{"members", many, "too_many_members"},
		{"id of 128 bytes", `{"eventType":"a","payload":{},"eventId":"` + strings.Repeat("i", 128) + `"}`, ""},
		{"id of 129 bytes", `{"eventType":"a","payload":{},"eventId":"` + strings.Repeat("i", 129) + `"}`, "too_long"},
		{"user of 129 bytes", `{"eventType":"a","payload":{},"userId":"` + strings.Repeat("i", 129) + `"}`, "too_long"},
		{"number of 500 digits", `{"eventType":"a","payload":{"n":` + strings.Repeat("1", 500) + `}}`, ""},
		{"number of 501 digits", `{"eventType":"a","payload":{"n":` + strings.Repeat("1", 501) + `}}`, "number_out_of_range"},
		{"small exponent", `{"eventType":"a","payload":{"n":1E-500}}`, ""},
		{"smaller exponent", `{"eventType":"a","payload":{"n":1E-501}}`, "number_out_of_range"},
		{"exponent with zeros", `{"eventType":"a","payload":{"n":1e0000000000000000000007}}`, ""},
		{"exponent in a string", `{"eventType":"a","payload":{"n":"1e999999","1e999":1}}`, ""},
		{"invalid UTF-8 that is repaired", "{\"eventType\":\"a\xff\",\"payload\":{\"\xfe\":\"\xc3\"}}", "repaired"},
		{"invalid UTF-8 outside of strings", "{\"eventType\":\"a\",\xff\"payload\":{}}", "invalid_json"},
		{"control character", "{\"eventType\":\"a\",\"payload\":{\"a\":\"\x00\"}}", "invalid_json"},
	} {
		r := newRig(t, nil)
		status, answer := r.post("/ingest/batch", "["+anEvent+","+c.event+","+anEvent+"]")
		want := 3
		if c.code != "" {
			if c.code != "repaired" {
				want = 2
			}
			if !strings.Contains(answer, `"code":"`+c.code+`"`) {
				t.Errorf("%s: %.300s, want the code %s", c.name, answer, c.code)
			}
		}
		if status != 202 || len(r.queue.msgs) != want {
			t.Errorf("%s: got %d %.300s, %d queued, want %d", c.name, status, answer, len(r.queue.msgs), want)
		}
	}
}

// A frame that asks for a large window gets it when there is room; frames behind it
// may not ask for more.
func TestZstdWindowsAreBounded(t *testing.T) {
	stream := func(window int, text string) string {
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{text[:len(text)/2], text[len(text)/2:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	large := events(2000, 1000)
	for _, c := range []struct {
		name, body string
		inFlight   int64
		status     int
	}{
		{"8 MiB", stream(8<<20, large), 64 << 20, 202},
		{"8 MiB without room", stream(8<<20, events(2, 1000)), 8 << 20, 503},
		{"16 MiB", stream(16<<20, large), 64 << 20, 413},
		{"64 KiB", stream(64<<10, large), 8 << 20, 202},
		{"small, then large", stream(64<<10, " ") + stream(8<<20, large), 64 << 20, 413},
		{"one segment of 2 MB", zstded(t, large), 64 << 20, 202},
	} {
		r := newRig(t, func(cfg *ingest.Config) { cfg.Limits.InFlightBytes = c.inFlight })
		if status, answer := r.post("/ingest/batch", c.body); status != c.status {
			t.Errorf("%s: got %d %.300s, want %d", c.name, status, answer, c.status)
		}
	}
}

func TestWhatIsInFlightIsBounded(t *testing.T) {
	r := newRig(t, func(c *ingest.Config) { c.Limits.InFlightBytes = 1 << 20 })
	status, header, answer := r.do("POST", "/ingest/batch", gzipped(t, events(1500, 1000)))
	if status != 503 || header.Get("Retry-After") != "1" || len(r.queue.msgs) != 0 {
		t.Errorf("got %d %s", status, answer)
	}
	// Items of two bytes take more than their bytes.
	if status, answer := r.post("/ingest/batch", "["+strings.Repeat("1,", 2499)+"1]"); status != 503 || len(r.badRows()) != 0 {
		t.Errorf("got %d %s", status, answer)
	}
	for range 20 { // nothing of it stays taken
		if status, answer := r.post("/ingest/batch", events(5, 80_000)); status != 202 {
			t.Fatalf("got %d %s", status, answer)
		}
	}
}

func TestTheContextOfABatchIsBounded(t *testing.T) {
	r := newRig(t, nil)
	items := strings.TrimSuffix(strings.Repeat(`{"type":"page"},`, 100), ",")
	context := `{"pad":"` + strings.Repeat("x", 50_000) + `"}`
	if status, answer := r.post("/v1/batch", `{"batch":[`+items+`],"context":`+context+`}`); status != 413 || !strings.Contains(answer, "context of the batch") {
		t.Errorf("got %d %s", status, answer)
	}
	if status, answer := r.post("/v1/batch", `{"batch":[{"type":"page"},{"type":"page","context":7}],"context":`+context+`}`); status != 200 {
		t.Errorf("got %d %s", status, answer)
	}
	if n := len(r.queue.events[0].Payload); n < 50_000 {
		t.Errorf("payload of %d bytes", n)
	}
	if s := string(r.queue.events[1].Payload); s != `{"type":"page","context":7}` {
		t.Errorf("payload %.200s", s)
	}
}

// A context of many members is merged in one pass: this took minutes and hundreds
// of gigabytes of copies.
func TestAContextOfManyMembersIsMergedOnce(t *testing.T) {
	r := newRig(t, func(c *ingest.Config) { c.Limits.WireBytes = 4 << 20 })
	var context strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&context, `"m%d":1,`, i)
	}
	body := `{"batch":[{"type":"page","context":{"own":1}},{"type":"page","context":{}}],"context":{` + context.String() + `"own":2}}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	status, answer := r.post("/v1/batch", body)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; status != 200 || took > 256<<20 {
		t.Errorf("got %d %s with %d MiB of memory", status, answer, took>>20)
	}
	for _, row := range r.badRows() {
		if !strings.Contains(row.Reason, "bytes") || len(row.Bytes) < 1_000_000 && !row.Cut {
			t.Errorf("%s: %s", row.Code, row.Reason)
		}
	}
	small := `{"batch":[{"type":"page","context":{"own":1}},{"type":"page","context":{ }}],"context":{"own":2,"b":[3]}}`
	if status, answer := r.post("/v1/batch", small); status != 200 || len(r.queue.events) != 2 {
		t.Fatalf("got %d %s", status, answer)
	}
	for i, want := range []string{`{"type":"page","context":{"own":1,"b":[3]}}`, `{"type":"page","context":{ "own":2,"b":[3]}}`} {
		if got := string(r.queue.events[i].Payload); got != want {
			t.Errorf("payload %s, want %s", got, want)
		}
	}
}
