//go:build e2e && linux

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// most is how much memory an attack may cost the server at any moment: three times what
// ingest.maxInflight allows (64 MiB), since the garbage collector is late on a busy machine.
const most = 192 << 20

// underAttack runs an attack beside a good client. The attack may not cost memory,
// and the good client's events are all accepted and written.
func underAttack(t *testing.T, attack func(t *testing.T, s *server)) {
	url := pgtest.Database(t)
	s := serve(t, url)
	good := &load{users: 4, every: 10 * time.Millisecond}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { good.run(ctx, s) })
	defer running.Wait()
	defer stop()
	wait(t, time.Second) // for its memory to settle
	before, peak := s.rss(), int64(0)
	if before == 0 {
		t.Fatal("the memory of the server cannot be read")
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		for ; ctx.Err() == nil; <-look.C {
			peak = max(peak, s.rss())
		}
	}()

	attack(t, s)
	stop()
	running.Wait()
	<-watched
	t.Logf("memory %d MiB before, %d MiB at most; %d good events", before>>20, peak>>20, len(good.acked))
	if peak-before > most {
		t.Errorf("memory went from %d MiB to %d MiB", before>>20, peak>>20)
	}
	if good.other > 0 {
		t.Errorf("%d requests of a good client failed meanwhile", good.other)
	}
	if len(good.acked) == 0 {
		t.Error("no event of a good client was accepted meanwhile")
	}
	connect(t, url).exactlyOnce(good.acked, 30*time.Second)
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// bomb is a gzip body of a few hundred KiB that unpacks to 300 MiB.
func bomb() []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.WriteString(w, `[{"eventType":"bomb","payload":{"a":"`)
	zeros := bytes.Repeat([]byte{'0'}, 1<<20)
	for range 300 {
		_, _ = w.Write(zeros)
	}
	_, _ = io.WriteString(w, `"}}]`)
	_ = w.Close()
	return out.Bytes()
}

func TestHostileBodies(t *testing.T) {
	event := func(payload string) string {
		return `{"eventType":"a","userId":"u","payload":` + payload + `}`
	}
	nested := event(strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000))
	open := event(strings.Repeat("[", 10_000))
	large := "[" + strings.TrimSuffix(strings.Repeat(event(`{"pad":"`+strings.Repeat("x", 1000)+`"}`)+",", 501_000/1000), ",") + "]"
	truncated := gzipped([]byte("[" + event(`{}`) + "]"))
	truncated = truncated[:len(truncated)-10]

	cases := []struct {
		name, path string
		body       []byte
		encoding   string
		status     int
		says       string // a part of the answer
	}{
		{"gzip bomb", "/ingest/batch", bomb(), "gzip", http.StatusRequestEntityTooLarge, ""},
		{"gzip bomb that hides", "/ingest/batch", bomb(), "", http.StatusRequestEntityTooLarge, ""},
		{"batch of 501 KB", "/ingest/batch", []byte(large), "", http.StatusRequestEntityTooLarge, ""},
		{"truncated gzip", "/ingest/batch", truncated, "gzip", http.StatusBadRequest, ""},
		{"nesting of 10,000", "/ingest/event", []byte(nested), "", http.StatusAccepted, `"rejected":1`},
		{"nesting that never closes", "/ingest/event", []byte(open), "", http.StatusBadRequest, ""},
		{"unknown encoding", "/ingest/event", []byte("\x1b\x0f\x00\xf8\x05brotli"), "br", http.StatusUnsupportedMediaType, ""},
		{"payload of the wrong type", "/ingest/event", []byte(event(`"text"`)), "", http.StatusAccepted, `"/payload"`},
		{"event type of the wrong type", "/ingest/event", []byte(`{"eventType":7,"payload":{}}`), "", http.StatusAccepted, `"/eventType"`},
		{"wrong types in a batch", "/ingest/batch", []byte("[" + event(`{}`) + `,7,"x",null,[],` + event(`{}`) + "]"), "", http.StatusAccepted, `"accepted":2`},
		{"nothing", "/ingest/event", nil, "", http.StatusBadRequest, ""},
		{"no JSON", "/ingest/event", []byte("hello"), "", http.StatusBadRequest, ""},
	}
	underAttack(t, func(t *testing.T, s *server) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				header := http.Header{}
				if c.encoding != "" {
					header.Set("Content-Encoding", c.encoding)
				}
				var attackers sync.WaitGroup
				for range 8 {
					attackers.Go(func() {
						for range 10 {
							status, body, err := post(t.Context(), s.url+c.path, c.body, header)
							if err != nil || status != c.status || !strings.Contains(body, c.says) {
								t.Errorf("status %d, want %d with %s; %v: %.300s", status, c.status, c.says, err, body)
								return
							}
						}
					})
				}
				attackers.Wait()
			})
		}
	})
}

// A device whose clock is off by ten years, either way: the event counts for now.
func TestClockOffByTenYears(t *testing.T) {
	url := pgtest.Database(t)
	s := serve(t, url)
	now := time.Now().UTC()
	for id, years := range map[string]int{"past": -10, "future": 10} {
		device := now.AddDate(years, 0, 0).Format(time.RFC3339)
		body := fmt.Sprintf(`{"eventType":"a","eventId":%q,"payload":{},"occurredAt":%q,"sentAt":%q}`, id, device, device)
		status, answer, err := post(t.Context(), s.url+"/ingest/event", []byte(body), nil)
		if err != nil || status != http.StatusAccepted || strings.Contains(answer, "rejected") {
			t.Fatalf("%s: status %d, %v: %s", id, status, err, answer)
		}
	}
	db := connect(t, url)
	near := `SELECT count(*) FROM events WHERE abs(extract(epoch FROM occurred_at - received_at)) < 600 AND abs(extract(epoch FROM sent_at - received_at)) > 86400 * 3000`
	if !eventually(t, 10*time.Second, func() bool { return db.count(near) == 2 }) {
		t.Errorf("%d of 2 events have a corrected time and the time that the device said", db.count(near))
	}
}

// 1,000 clients open a request, or a body, and send a byte now and then.
func TestSlowClients(t *testing.T) {
	heads := []string{ // after how long each is cut off
		"POST /ingest/event HTTP/1.1\r\nHost: slow\r\nX-Slow:",                            // 5 s
		"POST /ingest/event HTTP/1.1\r\nHost: slow\r\nContent-Length: 300\r\n\r\n{",       // 15 s
		"POST /ingest/event HTTP/1.1\r\nHost: slow\r\nContent-Length: 100000\r\n\r\n{",    // 21 s
		"POST /ingest/event HTTP/1.1\r\nHost: slow\r\nTransfer-Encoding: chunked\r\n\r\n", // 45 s
	}
	const clients = 1000
	underAttack(t, func(t *testing.T, s *server) {
		slow := make([]net.Conn, 0, clients)
		defer func() {
			for _, c := range slow {
				_ = c.Close()
			}
		}()
		for i := range clients {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			slow = append(slow, c)
			if _, err := io.WriteString(c, heads[i%len(heads)]); err != nil {
				t.Fatal(err)
			}
		}
		trickle := time.NewTicker(time.Second)
		defer trickle.Stop()
		for range 25 {
			<-trickle.C
			for _, c := range slow {
				_, _ = io.WriteString(c, " ") // refused by those that were cut off
			}
		}
		var cut [4]atomic.Int64
		var looking sync.WaitGroup
		for i, c := range slow {
			looking.Go(func() {
				_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
				if _, err := io.Copy(io.Discard, c); !isTimeout(err) {
					cut[i%len(heads)].Add(1)
				}
			})
		}
		looking.Wait()
		for kind := range 3 {
			if n := int(cut[kind].Load()); n != clients/len(heads) {
				t.Errorf("%d of %d were cut off after 25 s: %q", n, clients/len(heads), heads[kind])
			}
		}
	})
}

func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}

// The disk is full: the server says so with 503 and Retry-After, keeps what it
// accepted, answers reads, and accepts again when there is room. The edge refuses
// before it reads; without it the engine refuses by itself.
func TestFullDisk(t *testing.T) {
	for _, c := range []struct{ name, reserve string }{
		{"refused by the edge", "80MiB"},
		{"refused by the engine", "0B"},
	} {
		t.Run(c.name, func(t *testing.T) { fullDisk(t, c.reserve) })
	}
}

func fullDisk(t *testing.T, reserve string) {
	pg := pgtest.Start(t, pgtest.Config{})
	url := pg.Database(t)
	s := newServer(t, "DATABASE_URL="+url)
	s.onSmallDisk(128)
	s.args = []string{"--set", "data.reserve=" + reserve}
	s.start()
	pg.Stop() // so that nothing drains

	acked, status, answer := s.fillDisk()
	if status != http.StatusServiceUnavailable {
		t.Fatalf("status %d after %d events on a small disk, want 503: %s", status, len(acked), answer)
	}
	var problem struct {
		Code, Detail string
		RetryAfter   int
	}
	if err := json.Unmarshal([]byte(answer), &problem); err != nil || problem.Code == "" || problem.RetryAfter < 1 {
		t.Errorf("the answer says too little: %v: %s", err, answer)
	}
	if status, body, err := get(t.Context(), s.url+"/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("healthz: %d, %v: %s", status, err, body)
	}

	if err := pg.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := func() bool {
		status, _, err := post(t.Context(), s.url+"/ingest/event", []byte(`{"eventType":"after","payload":{}}`), nil)
		return err == nil && status == http.StatusAccepted
	}
	if !eventually(t, time.Minute, again) {
		t.Errorf("the server does not accept again after its disk has room; %s", s.onDisk())
	}
	t.Logf("%d events of 60 KB before 503 %s", len(acked), problem.Code)
	connect(t, url).exactlyOnce(acked, time.Minute)
}

// fillDisk sends large events until one is not accepted, and gives the answer.
func (s *server) fillDisk() (acked []string, status int, answer string) {
	s.t.Helper()
	pad := strings.Repeat("x", 60_000)
	for i := range 4000 {
		id := fmt.Sprintf("big-%04d", i)
		body := fmt.Appendf(nil, `{"eventType":"big","eventId":%q,"userId":"u","payload":{"pad":%q}}`, id, pad)
		var err error
		if status, answer, err = post(s.t.Context(), s.url+"/ingest/event", body, nil); err != nil {
			s.t.Fatal(err)
		}
		if status != http.StatusAccepted {
			return acked, status, answer
		}
		acked = append(acked, id)
	}
	return acked, status, answer
}

// onDisk tells what the data folder of a running server has, as the server sees it.
func (s *server) onDisk() string {
	dir := filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "root", s.data)
	files, err := os.ReadDir(dir)
	said := []string{fmt.Sprint(err)}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			said = append(said, fmt.Sprintf("%s: %d bytes", f.Name(), info.Size()))
		}
	}
	return strings.Join(said, ", ")
}

// onSmallDisk puts the data folder on a file system of so many MiB, in a mount
// namespace of the server's own.
func (s *server) onSmallDisk(mib int) {
	script := fmt.Sprintf(`mkdir -p "$0" && mount -t tmpfs -o size=%dm tmpfs "$0" && exec "$@"`, mib)
	s.wrap = []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, s.data}
}
