//go:build e2e && linux

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// browser follows a stream as an EventSource does: it remembers the last id, and shows
// it when it comes again.
type browser struct {
	s    *server
	path string
	last string // id

	from   string   // the id of the snapshot that all else came after
	names  []string // of the events that had an id
	ids    []string
	resets int
	done   bool
	opened func() // with the snapshot; may be nil
}

// streaming has no time limit, unlike client.
var streaming = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// visit opens the stream and leaves it after some events; 0: never. It gives the
// status, and why it ended.
func (b *browser) visit(ctx context.Context, leaveAfter int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.s.url+b.path, nil)
	if err != nil {
		return 0, err
	}
	if b.last != "" {
		req.Header.Set("Last-Event-ID", b.last)
	}
	res, err := streaming.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	seen := 0
	parse := parseSSE{take: func(e sseEvent) bool {
		b.see(e)
		seen++
		return leaveAfter == 0 || seen < leaveAfter
	}}
	for lines.Scan() && parse.line(lines.Text()) {
	}
	return res.StatusCode, lines.Err()
}

func (b *browser) see(e sseEvent) {
	switch e.name {
	case "reset":
		b.resets++
		b.from, b.names, b.ids = "", nil, nil // it begins anew
	case "done":
		b.done = true
	}
	if e.id == "" {
		return
	}
	b.last = e.id
	switch {
	case e.name != "snapshot":
		b.names, b.ids = append(b.names, e.name), append(b.ids, e.id)
	case b.from == "":
		b.from = e.id
		if b.opened != nil {
			b.opened()
		}
	default:
		b.s.t.Errorf("a second snapshot without a reset: %+v", e)
	}
}

// same compares what was seen since the snapshot with the history: each event
// once, in order, but for progress, of which a client that was away gets the latest.
func (b *browser) same(t *testing.T, history []happening) {
	t.Helper()
	for i := 1; i < len(b.ids); i++ {
		if place(t, b.ids[i]) <= place(t, b.ids[i-1]) {
			t.Errorf("event %s came after %s: doubled, or out of order", b.ids[i], b.ids[i-1])
		}
	}
	isProgress := map[string]bool{}
	var want, seen []string
	for _, h := range history {
		isProgress[h.ID] = h.Type == "progress"
		if h.Type != "progress" && place(t, h.ID) > place(t, b.from) {
			want = append(want, h.ID)
		}
	}
	for _, id := range b.ids {
		if is, known := isProgress[id]; !known {
			t.Errorf("event %s is not in the history", id)
		} else if !is {
			seen = append(seen, id)
		}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("%d events were seen beside progress, want %d:\n%v\n%v", len(seen), len(want), seen, want)
	}
}

// place is the number in the id of an event.
func place(t *testing.T, id string) int {
	t.Helper()
	n, err := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:])
	if err != nil {
		t.Fatalf("the id %q: %v", id, err)
	}
	return n
}

// A client that drops the stream again and again, and resumes it, misses nothing and
// sees nothing twice. When it has seen the end, it is told to stay away.
func TestStreamIsResumed(t *testing.T) {
	s := jobServer(t, script(t, "node", "handler.mjs")...)
	const lines = 200
	id := s.add("work", "node", options{"do": "talk", "n": lines, "pause": 10}, options{"delay": "1s"})
	b := &browser{s: s, path: jobPath(id) + "/stream"}
	random := rand.New(rand.NewPCG(5, 6))
	visits, status := 0, 0
	for ; !b.done && status != http.StatusNoContent; visits++ { // it may leave between the last state and done
		var err error
		status, err = b.visit(t.Context(), 1+random.IntN(30))
		if err != nil || status != http.StatusOK && status != http.StatusNoContent {
			t.Fatalf("visit %d: status %d, %v; last %q", visits, status, err, b.last)
		}
	}
	b.same(t, s.history(id))
	logs := 0
	for _, name := range b.names {
		if name == "log" {
			logs++
		}
	}
	t.Logf("%d events in %d visits, %d of them lines of the log", len(b.ids), visits, logs)
	if logs != lines || b.resets != 0 || visits < 5 || b.names[len(b.names)-1] != "state" {
		t.Errorf("%d lines of %d, %d resets, %d visits", logs, lines, b.resets, visits)
	}
	if status, err := b.visit(t.Context(), 0); err != nil || status != http.StatusNoContent {
		t.Errorf("after the end: status %d, %v; want 204", status, err)
	}
}

// Each stage of a job is shown, however soon the next one begins.
func TestStreamShowsEachStage(t *testing.T) {
	s := jobServer(t, script(t, "node", "handler.mjs")...)
	const stages = 8
	id := s.add("work", "node", options{"do": "stages", "n": stages}, options{"delay": "500ms"})
	seen, _ := s.rawStream(jobPath(id) + "/stream")
	t.Logf("%q", seen)
	for n := range stages {
		if stage := fmt.Sprintf("stage %d", n+1); !slices.Contains(seen, stage) {
			t.Errorf("%s was not shown", stage)
		}
	}
}

// The server is killed while a client watches. It resumes with nothing missed, or is
// told that it begins anew.
func TestStreamOverARestart(t *testing.T) {
	s := jobServer(t, script(t, "node", "handler.mjs")...)
	id := s.add("work", "node", options{"do": "talk", "n": 60, "pause": 20}, options{"delay": "500ms"})
	b := &browser{s: s, path: jobPath(id) + "/stream"}
	if _, err := b.visit(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	s.kill()
	if _, err := b.visit(t.Context(), 0); err == nil {
		t.Error("a stream was opened at a server that is gone")
	}
	s.start()
	for visits := 0; !b.done; visits++ {
		status, err := b.visit(t.Context(), 0)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || status != http.StatusOK || visits > 10 {
			t.Fatalf("visit %d: status %d, %v", visits, status, err)
		}
	}
	t.Logf("%d events, %d resets", len(b.ids), b.resets)
	b.same(t, s.history(id))
	if n := s.completedOnce([]string{id}, time.Second); n != 1 {
		t.Errorf("the job was interrupted %d times, want once", n)
	}
}

// A server that ends does not wait for those who watch.
func TestStreamsEndWithTheServer(t *testing.T) {
	s := jobServer(t, "server.drain=2m")
	id := s.add("nobody", "node", nil, nil)
	var watching sync.WaitGroup
	var open atomic.Int32
	for range 20 {
		watching.Go(func() {
			b := &browser{s: s, path: jobPath(id) + "/stream", opened: func() { open.Add(1) }}
			status, err := b.visit(t.Context(), 0)
			open.Add(-1)
			if err != nil || status != http.StatusOK || b.done {
				t.Errorf("a stream ended with status %d, %v", status, err)
			}
		})
	}
	if !eventually(t, 30*time.Second, func() bool { return open.Load() == 20 }) {
		t.Fatalf("%d of 20 streams are open", open.Load())
	}
	began := time.Now()
	if code := s.terminate(time.Minute); code != 0 {
		t.Errorf("SIGTERM ended the server with code %d", code)
	}
	t.Logf("the server ended %s after SIGTERM, with 20 streams open", time.Since(began))
	watching.Wait()
}
