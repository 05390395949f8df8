package stream_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/stream"
)

func TestAJobFromItsBeginningToItsEnd(t *testing.T) {
	t.Parallel()
	s := start(t, open(t, ""), nil)
	s.add("j1")
	s.add("other")
	r := s.get("j1", "")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", "Content-Encoding": "",
	} {
		if got := r.header.Get(name); got != want || r.status != 200 {
			t.Errorf("%d %s: %q, want %q", r.status, name, got, want)
		}
	}
	first, err := r.lines.ReadString('\n')
	ms, _ := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(first), "retry: "))
	if err != nil || ms < 1000 || ms > 3000 {
		t.Errorf("the first line is %q", first)
	}
	ids := r.want("snapshot:waiting")
	d := s.begin()
	s.progress(d, 10)
	ids = append(ids, r.want("state:active", "progress:10")...)
	s.log(d, "a line")
	ids = append(ids, r.want("log:a line")...)
	s.settle(d, forebay.Ack)
	ids = append(ids, r.want("state:completed")...)
	e, ok := r.next()
	if !ok || e.name != "done" || e.id != "" || string(e.data.Result) != `{"done":true}` || e.data.JobID != "j1" {
		t.Errorf("the end: %+v", e)
	}
	r.end()

	last := int64(-1)
	epoch := ""
	for _, id := range ids {
		cut := strings.LastIndexByte(id, '-')
		seq, err := strconv.ParseInt(id[cut+1:], 10, 64)
		if err != nil || seq <= last || epoch != "" && id[:cut] != epoch || cut < 1 {
			t.Errorf("ids %q", ids)
		}
		last, epoch = seq, id[:cut]
	}

	// Whoever has seen the end is told to stop; who has not sees it at once.
	if r := s.get("j1", ids[len(ids)-1]); r.status != http.StatusNoContent {
		t.Errorf("after the end: %d", r.status)
	}
	if r := s.get("j1?last_event_id="+ids[len(ids)-1], ""); r.status != http.StatusNoContent {
		t.Errorf("after the end, told in the query: %d", r.status)
	}
	r = s.get("j1", "")
	id := r.want("snapshot:completed", "done:completed")[0]
	r.end()
	if r := s.get("j1", id); r.status != http.StatusNoContent {
		t.Errorf("after the snapshot of the end: %d", r.status)
	}
	r = s.get("unknown", "")
	if body, err := io.ReadAll(r.body); r.status != 404 || err != nil || !strings.Contains(string(body), `"not_found"`) {
		t.Errorf("an unknown job: %d %s %v", r.status, body, err)
	}
}

// What happened while a client was away comes once each and in order, from the ring
// of the watcher or, after a restart, from the store.
func TestResume(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queue.db")
	s := start(t, open(t, path), nil)
	s.add("j1")
	d := s.begin()
	r := s.get("j1", "")
	id := r.want("snapshot:active")[0]
	s.log(d, "one")
	id1 := r.want("log:one")[0]
	r.conn.Close()

	s.log(d, "two")
	s.log(d, "three")
	s.progress(d, 20)
	s.progress(d, 40)
	s.settle(d, forebay.Retry)
	d = s.begin()
	missed := []string{"log:two", "log:three", "progress:40", "state:waiting", "state:active"}
	r = s.get("j1", id1)
	r.want(missed...)
	s.log(d, "four") // and it goes on
	last := r.want("log:four")[0]
	r.conn.Close()
	s.get("j1", id).want(append([]string{"log:one"}, missed...)...)

	s.settle(d, forebay.Ack)
	s.stop()
	s = start(t, open(t, path), nil)
	r = s.get("j1", last)
	r.want("state:completed", "done:completed")
	r.end()
	r = s.get("j1", id1)
	r.want("log:two", "log:three", "progress:40", "state:waiting", "state:active", "log:four", "state:completed", "done:completed")
	r.end()
}

func TestPlacesThatAreNoneGetAReset(t *testing.T) {
	t.Parallel()
	s := start(t, open(t, ""), nil)
	s.add("j1")
	r := s.get("j1", "")
	id := r.want("snapshot:waiting")[0]
	epoch := id[:strings.LastIndexByte(id, '-')]
	for _, last := range []string{"other-1", epoch + "-999999", epoch + "-", epoch, "x", "-1", epoch + "--5"} {
		r := s.get("j1", last)
		r.want("reset", "snapshot:waiting")
		r.conn.Close()
	}
	s.get("j1", id).conn.Close()
}

func TestAJobThatLivesAgainGoesOn(t *testing.T) {
	t.Parallel()
	s := start(t, open(t, ""), nil)
	s.add("j1")
	d := s.begin()
	r := s.get("j1", "")
	id := r.want("snapshot:active")[0]
	s.settle(d, forebay.Dead)
	if e, ok := r.next(); !ok || e.data.State != forebay.StateDead || e.data.Attempts != 1 {
		t.Errorf("the end says otherwise than the ledger, of 1 failed attempt: %+v", e)
	}
	r.want("done:dead")
	r.end()
	results, err := s.broker.Retry(context.Background(), []string{"j1"})
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
	r = s.get("j1", id)
	r.want("state:dead", "state:waiting")
	s.settle(s.begin(), forebay.Ack)
	r.want("state:active", "state:completed", "done:completed")
	r.end()
}

func TestThereIsARoomForSoMany(t *testing.T) {
	t.Parallel()
	s := start(t, open(t, ""), func(s *stand, c *stream.Config) {
		c.Most, c.PerCaller = 3, 2
		s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := stream.WithAccess(r.Context(), stream.Access{Caller: r.URL.Query().Get("who")})
			s.streams.ServeJob(w, r.WithContext(ctx), strings.TrimPrefix(r.URL.Path, "/"), nil)
		})
	})
	s.add("j1")
	first := s.get("j1?who=a", "")
	s.get("j1?who=a", "").want("snapshot")
	if r := s.get("j1?who=a", ""); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" {
		t.Errorf("one too many of a caller: %d", r.status)
	}
	s.get("j1?who=b", "").want("snapshot")
	if r := s.get("j1?who=c", ""); r.status != http.StatusServiceUnavailable {
		t.Errorf("one too many in all: %d", r.status)
	}
	if n := s.streams.Open(); n != 3 {
		t.Errorf("%d are open", n)
	}
	first.conn.Close()
	for s.streams.Open() == 3 { // until the server has noticed
		<-tick()
	}
	s.get("j1?who=c", "").want("snapshot")
}

// Shutdown waits for no client: streams end at once, whole, and none begins.
func TestCloseEndsAll(t *testing.T) {
	t.Parallel()
	s := start(t, open(t, ""), nil)
	s.add("j1")
	var all []*reader
	for range 5 {
		r := s.get("j1", "")
		r.want("snapshot")
		all = append(all, r)
	}
	s.streams.Close()
	for _, r := range all {
		r.end()
	}
	if r := s.get("j1", ""); r.status != http.StatusServiceUnavailable {
		t.Errorf("after Close: %d", r.status)
	}
	s.streams.Close()
}

// A wrapper that hides the connection is told of, instead of a stream without
// deadlines.
func TestWrappersMustUnwrap(t *testing.T) {
	t.Parallel()
	type hiding struct{ http.ResponseWriter }
	s := start(t, open(t, ""), func(s *stand, c *stream.Config) {
		s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.streams.ServeJob(hiding{w}, r, strings.TrimPrefix(r.URL.Path, "/"), nil)
		})
	})
	s.add("j1")
	if r := s.get("j1", ""); r.status != http.StatusInternalServerError {
		t.Errorf("status %d", r.status)
	}
}

func TestShapeIsTheCallers(t *testing.T) {
	t.Parallel()
	s := start(t, open(t, ""), func(s *stand, c *stream.Config) {
		s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.streams.ServeJob(w, r, strings.TrimPrefix(r.URL.Path, "/"), func(j forebay.Job) any {
				return map[string]string{"status": "so " + string(j.State)}
			})
		})
	})
	s.add("j1")
	r := s.get("j1", "")
	text := ""
	for !strings.HasSuffix(text, "}\n\n") {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		text += line
	}
	if !strings.Contains(text, "event: snapshot\nid: ") || !strings.HasSuffix(text, "data: {\"v\":1,\"status\":\"so waiting\"}\n\n") {
		t.Errorf("%q", text)
	}
}

func TestAllJobsOfAQueue(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queue.db")
	serve := func() *stand {
		return start(t, open(t, path), func(s *stand, _ *stream.Config) {
			s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.streams.ServeEvents(w, r, broker.WatchFilter{Queue: strings.TrimPrefix(r.URL.Path, "/")})
			})
		})
	}
	s := serve()
	s.add("before")
	r := s.get("q", "")
	other := s.get("other", "")
	ids := r.want("reset")
	other.want("reset")
	s.add("j1")
	d := s.begin()
	s.log(d, "a line")
	ids = append(ids, r.want("state:waiting", "state:active", "log:a line")...)
	s.settle(d, forebay.Ack)
	r.want("state:completed")
	s.streams.Close()
	other.end()
	r.end()
	s.stop()

	s = serve()
	r = s.get("q", ids[1])
	if again := r.want("state:active", "log:a line", "state:completed"); again[0] != ids[2] {
		t.Errorf("%v, then %v", ids, again)
	}
	s.add("j2")
	r.want("state:waiting")
	s.get("q", "other-1").want("reset")
}
