package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/sink"
	"github.com/forebayhq/forebay/sink/sqlite"
)

const (
	many = 600
	page = 4096
)

// filled makes a closed file of many events.
func filled(t *testing.T) (path string) {
	t.Helper()
	path = file(t)
	s, err := sqlite.Open(path, fast())
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, samples(0, many)...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// spoil changes a file in place.
func spoil(t *testing.T, path string, change func([]byte) []byte) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = change(b)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

func garble(b []byte) {
	for i := range b {
		b[i] = 0xa5
	}
}

// kept gives the one damaged file that was set aside.
func kept(t *testing.T, path string) string {
	t.Helper()
	names, err := filepath.Glob(path + ".damaged-*Z")
	if err != nil || len(names) != 1 {
		t.Fatalf("set aside: %q, %v", names, err)
	}
	return names[0]
}

func logged(cfg *sqlite.Config) *bytes.Buffer {
	var log bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	return &log
}

func TestDamageAtOpen(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]byte) []byte
		least  int
		most   int
	}{
		"no database": {func([]byte) []byte { return []byte(strings.Repeat("this is no database. ", 1000)) }, 0, 0},
		"header":      {func(b []byte) []byte { garble(b[:100]); return b }, many, many},
		"first page":  {func(b []byte) []byte { garble(b[:page]); return b }, many, many},
		"cut in half": {func(b []byte) []byte { return b[:len(b)/2] }, many / 10, many - 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			damaged := spoil(t, path, c.change)
			cfg := fast()
			log := logged(&cfg)
			s := open(t, path, cfg)
			saved := count(t, admin(t, path), rows)
			if saved < c.least || saved > c.most {
				t.Errorf("%d events saved", saved)
			}
			if b, err := os.ReadFile(kept(t, path)); err != nil || !bytes.Equal(b, damaged) {
				t.Errorf("the copy is not the damaged file: %v", err)
			}
			if text := log.String(); !strings.Contains(text, kept(t, path)) || !strings.Contains(text, "rowsSaved="+strconv.Itoa(saved)) ||
				strings.Contains(text, `lost=""`) != (saved == many) {
				t.Errorf("the log says %s", text)
			}
			mustWrite(t, s, samples(0, many+1)...) // what was lost may come again
			if n := count(t, admin(t, path), rows); n != many+1 {
				t.Errorf("%d events", n)
			}
		})
	}
}

// Damage that a running sink meets pauses it; no event becomes a dead letter. The
// next start saves what can be read.
func TestDamageWhileRunning(t *testing.T) {
	for name, meet := range map[string]func(*testing.T, *sqlite.Sink){
		"a batch": func(*testing.T, *sqlite.Sink) {},
		"find": func(t *testing.T, s *sqlite.Sink) {
			if _, _, err := s.Find(t.Context(), sample(7).ID); err == nil || !strings.Contains(err.Error(), "is damaged") {
				t.Errorf("find: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			// Page 3 is the root of the index of ids, which every insert goes through.
			spoil(t, path, func(b []byte) []byte { garble(b[2*page : 3*page]); return b })
			states := make(chan sink.State, 100)
			cfg := fast()
			cfg.OnState = func(st sink.State) { states <- st }
			s, err := sqlite.Open(path, cfg)
			if err != nil {
				t.Fatal(err)
			}
			meet(t, s)
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan []error, 1)
			ds := deliveries(t, samples(many, 20)...)
			go func() { done <- s.HandleBatch(ctx, ds) }()
			if st := <-states; !st.Paused || !strings.Contains(st.Reason, "events.db is damaged; restart the server") {
				t.Errorf("state %+v", st)
			}
			if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "is damaged") {
				t.Errorf("check: %v", err)
			}
			cancel(forebay.ErrDraining)
			for _, err := range <-done {
				if err == nil || forebay.IsPermanent(err) {
					t.Errorf("error %v", err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}

			cfg = fast()
			log := logged(&cfg)
			s = open(t, path, cfg)
			mustWrite(t, s, samples(many, 20)...)
			if n := count(t, admin(t, path), rows); n != many+20 {
				t.Errorf("%d events; the log says %s", n, log)
			}
			kept(t, path)
		})
	}
}

// Whatever pages are destroyed: the sink pauses or writes, and after at most one
// more start all is well, with the events that were lost written again.
func TestRandomDamage(t *testing.T) {
	seed := rand.Uint64()
	if s := os.Getenv("SINK_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("again with SINK_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	whole, err := os.ReadFile(filled(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		path := file(t)
		b := bytes.Clone(whole)
		for range 1 + rnd.IntN(4) {
			n := rnd.IntN(len(b) / page)
			garble(b[n*page : (n+1)*page])
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if !worksOn(t, path) && !worksOn(t, path) {
			t.Error("the second start is not well")
		}
	}
}

// worksOn writes and finds all events; false: it has met damage.
func worksOn(t *testing.T, path string) bool {
	t.Helper()
	paused := make(chan struct{}, 100)
	cfg := fast()
	cfg.OnState = func(sink.State) { paused <- struct{}{} }
	s, err := sqlite.Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan []error, 1)
	ds := deliveries(t, samples(0, many)...)
	go func() { done <- s.HandleBatch(ctx, ds) }()
	select {
	case <-paused:
		cancel(forebay.ErrDraining)
		for _, err := range <-done {
			if forebay.IsPermanent(err) {
				t.Errorf("a dead letter: %v", err)
			}
		}
		return false
	case errs := <-done:
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	}
	for i := range many {
		_, found, err := s.Find(t.Context(), sample(i).ID)
		if err != nil {
			return false
		}
		if !found {
			t.Errorf("event %d is not found", i)
		}
	}
	return true
}
