package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// The write-ahead log stays within its bound however much is written, and the file
// is used again for what comes after.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := open(t, sqlite.Config{Path: path, Durability: sqlite.DurabilityProcess})
	body := make([]byte, forebay.MaxPayloadBytes)
	size := func(suffix string) int64 {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for round := range 6 {
		for i := range 25 {
			send(t, e, forebay.Message{ID: fmt.Sprint(round, " ", i), Queue: "q", Payload: body})
			if log := size("-wal"); log > 100<<20 {
				t.Fatalf("the log has %d bytes", log)
			}
		}
		for range 25 {
			settle(t, e, forebay.Ack, receive(t, e, 1)...)
		}
	}
	if size := size(""); size > 100<<20 {
		t.Errorf("the file has %d bytes, and never held more than 25 MB", size)
	}
}

// A log that was moved into the database whole is no reason to move it again.
func TestIdleAfterCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := open(t, sqlite.Config{Path: path, Durability: sqlite.DurabilityProcess})
	body := make([]byte, forebay.MaxPayloadBytes)
	for i := range 17 {
		send(t, e, forebay.Message{ID: fmt.Sprint(i), Queue: "q", Payload: body})
	}
	size, saving := e.LogSize()
	for saving {
		runtime.Gosched()
		size, saving = e.LogSize()
	}
	if size >= 16<<20 { // the last message may be in a log that began anew
		t.Errorf("the log still has %d bytes to move", size)
	}
	// What was moved is room for what comes: a server that refuses since there is none would
	// never write, and so never get it back.
	used, _, err := e.Size(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || used > info.Size()+size+8<<20 { // some pages are in the log only
		t.Errorf("%d bytes are in use, and the database has %d, its log %d; %v", used, info.Size(), size, err)
	}
}

// Where the disk has too little room, what lies in the log is moved although it is not much: a
// server that takes nothing more writes nothing that would make it grow.
func TestLogMovesWhenRoomIsWanted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := open(t, sqlite.Config{Path: path, Durability: sqlite.DurabilityProcess, Log: sqlite.LogConfig{KeepFree: 1 << 60}})
	send(t, e, forebay.Message{ID: "1", Queue: "q", Payload: make([]byte, forebay.MaxPayloadBytes)})
	if _, _, err := e.Size(context.Background()); err != nil {
		t.Fatal(err)
	}
	size, saving := e.LogSize()
	for saving {
		runtime.Gosched()
		size, saving = e.LogSize()
	}
	if size > 0 {
		t.Errorf("%d bytes of the log are not moved", size)
	}
}
