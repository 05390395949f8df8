package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// readLog reads all of a log.
func readLog(t testing.TB, e *sqlite.Engine, queue string) (all []engine.LogEntry, oldest int64) {
	t.Helper()
	pages := 0
	for q := (engine.LogQuery{Queue: queue}); ; pages++ {
		if pages > 1000 {
			t.Fatalf("after %d pages and %d messages there is still more, after %d", pages, len(all), q.After)
		}
		page, err := e.ReadLog(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Entries...)
		if q.After = page.Next; !page.More {
			return all, page.Oldest
		}
	}
}

func largeMessages(n int, prefix string) []forebay.Message {
	msgs := messages(n, prefix)
	for i := range msgs {
		msgs[i].Payload = []byte(strings.Repeat("payload ", 1000))
	}
	return msgs
}

// A row that fills a look by itself is passed like any other.
func TestLogIsReadPastLargeRows(t *testing.T) {
	e := open(t, sqlite.Config{Log: sqlite.LogConfig{Age: time.Hour}})
	for i := range 3 {
		send(t, e, largeMessages(150, fmt.Sprint("m", i, "-"))...)
	}
	if all, _ := readLog(t, e, "q"); len(all) != 450 {
		t.Errorf("the log tells of %d messages", len(all))
	}
	q := engine.LogQuery{Queue: "q", Limit: 40}
	for _, left := range []int64{410, 370} { // it tells how many are left, also within a row
		page, err := e.ReadLog(context.Background(), q)
		if err != nil || page.Left != left {
			t.Errorf("after 40 more it tells of %d that are left, want %d, %v", page.Left, left, err)
		}
		q.After = page.Next
	}
}

// A log keeps to its bytes in whole slices; what leaves it while it waits is worked,
// and leaves no row behind.
func TestLogKeepsToItsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		cfg := sqlite.Config{Path: path, Log: sqlite.LogConfig{Age: 24 * time.Hour, Ages: map[string]time.Duration{"none": 0}, MaxBytes: 1 << 20}}
		e := open(t, cfg)
		const rounds = 60
		for i := range rounds {
			send(t, e, largeMessages(10, fmt.Sprint("m", i, "-"))...) // 80 KB
			if i%2 == 0 {
				settle(t, e, forebay.Ack, receive(t, e, 10)...)
			}
			time.Sleep(2 * time.Second)
		}
		all, oldest := readLog(t, e, "q")
		if n := len(all); n < 70 || n > 150 || oldest == 0 || all[n-1].Message.ID != "m59-9" {
			t.Errorf("the log has %d messages, oldest %d", n, oldest)
		}
		infos, err := e.Logs(context.Background())
		if err != nil || len(infos) != 1 || infos[0].Messages != int64(len(all)) || infos[0].Bytes > 1<<20+100<<10 {
			t.Errorf("the logs are %+v, %v", infos, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
		if again, at := readLog(t, e, "q"); len(again) != len(all) || again[0].Seq != all[0].Seq || at != oldest {
			t.Errorf("after a start the log has %d messages, before %d", len(again), len(all))
		}
		seen := 0
		for ds := receive(t, e, 100); len(ds) > 0; ds = receive(t, e, 100) {
			seen += len(ds)
			settle(t, e, forebay.Ack, ds...)
		}
		if seen != rounds*10/2 {
			t.Errorf("%d messages were handed out, want %d", seen, rounds*10/2)
		}
		if rows, blocks := e.Count("SELECT sum(n) FROM log"), e.Count("SELECT count(*) FROM block"); rows != int64(len(all)) || blocks != 0 {
			t.Errorf("%d messages in rows of the log, and %d blocks; want %d and none", rows, blocks, len(all))
		}
		m := messages(1, "x")[0]
		m.Queue = "none"
		send(t, e, m)
		if _, err := e.ReadLog(context.Background(), engine.LogQuery{Queue: "none"}); forebay.CodeOf(err) != forebay.CodeUnsupported {
			t.Errorf("the log of a queue without one: %v", err)
		}
	})
}

// Recovery keeps what is readable of blocks whose data is in the log.
func TestLogIsRecovered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	cfg := sqlite.Config{Path: path, Log: sqlite.LogConfig{Age: time.Hour}}
	e := mustOpen(t, cfg)
	for i := range 30 {
		send(t, e, largeMessages(10, fmt.Sprint("m", i, "-"))...)
	}
	settle(t, e, forebay.Ack, receive(t, e, 100)...)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := len(b) / pageSize / 2 // of a payload: others are few
	clear(b[page*pageSize : (page+1)*pageSize])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	if err := e.Exec("INSERT INTO meta (name, value) VALUES ('damaged', 1)"); err != nil { // as who met it marks it
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	if e.Recovery().Copy == "" {
		t.Fatal("nothing was recovered")
	}
	waiting := receive(t, e, 1000)
	if n := len(waiting); n < 190 || n > 200 {
		t.Errorf("%d messages are handed out", n)
	}
	settle(t, e, forebay.Ack, waiting...)
	if all, _ := readLog(t, e, "q"); len(all) < 289 || len(all) > 300 {
		t.Errorf("the log has %d messages", len(all))
	}
}
