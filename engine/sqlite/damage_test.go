package sqlite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// filled makes a database file with some of everything.
func filled(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path})
	for i := range 40 {
		msgs := messages(50, string(rune('a'+i%26))+string(rune('a'+i/26))+"-")
		for j := range msgs {
			msgs[j].Payload = []byte(strings.Repeat("payload ", 40))
		}
		send(t, e, msgs...)
	}
	ds := receive(t, e, 300)
	settle(t, e, forebay.Ack, ds[:100]...)
	settle(t, e, forebay.Retry, ds[100:200]...)
	settle(t, e, forebay.Dead, ds[200:210]...)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// drained works all off and gives the messages that came.
func drained(t *testing.T, e *sqlite.Engine) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for {
		ds := receive(t, e, 500)
		if len(ds) == 0 {
			return seen
		}
		for _, d := range ds {
			if seen[d.ID] {
				t.Fatalf("%q came twice", d.ID)
			}
			if string(d.Payload) != strings.Repeat("payload ", 40) {
				t.Fatalf("%q came changed", d.ID)
			}
			seen[d.ID] = true
		}
		settle(t, e, forebay.Ack, ds...)
	}
}

// Wherever a page is damaged, the engine opens; what comes is unchanged and comes
// once, and what does not come is told. The places are others in each run, unless
// SQLITE_DAMAGE_SEED names those of an earlier one.
func TestDamage(t *testing.T) {
	whole := filled(t)
	seed := rand.Uint64()
	if s := os.Getenv("SQLITE_DAMAGE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	const all = 2000 - 100 - 10
	pages := len(whole) / pageSize
	mostly, rounds := 0, 60
	for round := range rounds {
		b := append([]byte{}, whole...)
		page := 1 + rng.IntN(pages-1) // the first is TestDamagedHeader's
		switch round % 3 {
		case 0: // a byte
			b[page*pageSize+rng.IntN(pageSize)] ^= byte(1 + rng.IntN(255))
		case 1: // the start of a page, where its structure is
			rng.Shuffle(64, func(i, j int) { b[page*pageSize+i], b[page*pageSize+j] = b[page*pageSize+j], b[page*pageSize+i] })
			b[page*pageSize] ^= 0xff
		case 2: // a whole page
			clear(b[page*pageSize : (page+1)*pageSize])
		}
		path := filepath.Join(t.TempDir(), "forebay.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		var told bytes.Buffer
		log := slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{Level: slog.LevelError}))
		e, err := sqlite.Open(sqlite.Config{Path: path, Logger: log})
		if err != nil {
			t.Fatalf("seed %d round %d page %d: %v", seed, round, page, err)
		}
		seen := drained(t, e)
		rec := e.Recovery()
		if err := e.Close(); err != nil {
			t.Fatalf("seed %d round %d: close: %v", seed, round, err)
		}
		if rec.Copy != "" {
			if _, err := os.Stat(rec.Copy); err != nil {
				t.Errorf("seed %d round %d: %v", seed, round, err)
			}
		}
		if len(seen) < all && told.Len() == 0 {
			t.Errorf("seed %d round %d page %d: %d of %d messages are left, and nothing tells so", seed, round, page, len(seen), all)
		}
		if len(seen) >= all/2 {
			mostly++
		}
	}
	if mostly < rounds*3/4 { // the few are the pages from which all others are reached
		t.Errorf("seed %d: most messages were left in %d of %d rounds only", seed, mostly, rounds)
	}
}

func TestDamagedHeader(t *testing.T) {
	whole := filled(t)
	path := filepath.Join(t.TempDir(), "forebay.db")
	clear(whole[:pageSize])
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	e := open(t, sqlite.Config{Path: path})
	rec := e.Recovery()
	if rec.Copy == "" || len(rec.Lost) == 0 {
		t.Errorf("recovery tells nothing: %+v", rec)
	}
	kept, err := os.ReadFile(rec.Copy)
	if err != nil || len(kept) != len(whole) {
		t.Errorf("the copy has %d of %d bytes, %v", len(kept), len(whole), err)
	}
	send(t, e, messages(1, "new")...)
}

func TestNotTouched(t *testing.T) {
	whole := filled(t)
	edit := func(at int, v uint32) []byte {
		b := append([]byte{}, whole...)
		binary.BigEndian.PutUint32(b[at:], v)
		return b
	}
	for name, c := range map[string]struct {
		file []byte
		code forebay.Code
	}{
		"a newer version": {edit(60, 99), forebay.CodeTooNew},
		"another program": {edit(68, 0x12345678), forebay.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "forebay.db")
			if err := os.WriteFile(path, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := sqlite.Open(sqlite.Config{Path: path})
			if forebay.CodeOf(err) != c.code {
				t.Errorf("error %v, want %s", err, c.code)
			}
			after, _ := os.ReadFile(path)
			if string(after) != string(c.file) {
				t.Error("the file was changed")
			}
			if files, _ := os.ReadDir(dir); len(files) != 1 {
				t.Errorf("files were made: %v", files)
			}
		})
	}
}

func TestInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	open(t, sqlite.Config{Path: path})
	_, err := sqlite.Open(sqlite.Config{Path: path})
	if forebay.CodeOf(err) != forebay.CodeInUse || !strings.Contains(err.Error(), "process") {
		t.Errorf("error %v", err)
	}
}

func TestNoFolder(t *testing.T) {
	_, err := sqlite.Open(sqlite.Config{Path: filepath.Join(t.TempDir(), "none", "forebay.db")})
	var e *forebay.Error
	if !errors.As(err, &e) || e.Code != forebay.CodeUnavailable || e.Hint == "" {
		t.Errorf("error %v", err)
	}
}

// A full store refuses what is sent, still hands out and settles, and takes sends
// again when there is room.
func TestFull(t *testing.T) {
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db"), MaxBytes: 1 << 20})
	ctx := context.Background()
	var sent int
	var full error
	for i := range 1000 {
		res, err := e.Send(ctx, messages(100, string(rune('a'+i/26))+string(rune('a'+i%26))))
		if err != nil {
			full = err
			break
		}
		sent += len(res)
	}
	if forebay.CodeOf(full) != forebay.CodeFull {
		t.Fatalf("error %v after %d messages", full, sent)
	}
	if err := e.Check(ctx); err == nil {
		t.Log("a row could still be written") // a page in use may have room for it
	}
	for left := sent; left > 0; {
		ds := receive(t, e, 1000)
		if len(ds) == 0 {
			t.Fatalf("%d messages are left and do not come", left)
		}
		left -= len(ds)
		settle(t, e, forebay.Ack, ds...)
	}
	send(t, e, messages(100, "after")...)
	if err := e.Check(ctx); err != nil {
		t.Errorf("check: %v", err)
	}
}

// With less than the reserve free, nothing more is taken, and Check says why.
func TestReserve(t *testing.T) {
	cfg := sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")}
	e := mustOpen(t, cfg)
	send(t, e, messages(10, "m")...)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.DiskReserve = 1 << 60
	e = open(t, cfg)
	ctx := context.Background()
	if _, err := e.Send(ctx, messages(1, "n")); forebay.CodeOf(err) != forebay.CodeFull {
		t.Errorf("send: %v", err)
	}
	if err := e.Check(ctx); forebay.CodeOf(err) != forebay.CodeFull {
		t.Errorf("check: %v", err)
	}
	settle(t, e, forebay.Ack, receive(t, e, 10)...)
}
