package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// searched are jobs of which some are rare: user 42 has five.
func searched(from, n int) []forebay.Message {
	msgs := make([]forebay.Message, n)
	for i := range msgs {
		at := from + i
		user := 1000 + at%100_000
		if at%200_000 == 137 {
			user = 42
		}
		msgs[i] = forebay.Message{
			ID: fmt.Sprintf("019ae3c8-%04x-7%03x-8000-%012x", at>>12&0xffff, at&0xfff, at), Queue: "q", Kind: "email.send",
			Payload: fmt.Appendf(nil, `{"user":{"id":%d,"name":"somebody %d"},"action":"resize","file":"a/b/c/%08x.jpg","width":%d,"quality":80,"shard":%d,"note":"%0100d"}`,
				user, user, at*7919, 100+at%50, at%1000, at),
			Job: &forebay.JobOptions{Tenant: "t" + strconv.Itoa(at%20), Tags: []string{"red"}},
		}
	}
	return msgs
}

// BenchmarkSearch measures first pages over many jobs that wait, or have finished.
func BenchmarkSearch(b *testing.B) {
	for commit, jobs := range map[int]int{1000: 1_000_000, 1: 200_000} {
		b.Run(fmt.Sprintf("commit=%d/jobs=%d", commit, jobs), func(b *testing.B) {
			e := mustOpen(b, sqlite.Config{Path: filepath.Join(b.TempDir(), "forebay.db"), Durability: sqlite.DurabilityProcess})
			defer e.Close()
			start := time.Now()
			for at := 0; at < jobs; at += commit {
				send(b, e, searched(at, commit)...)
			}
			b.Logf("sent in %s", time.Since(start))
			search(b, e, "waiting")
			for done := 0; done < jobs; {
				ds := receive(b, e, commit)
				settle(b, e, forebay.Ack, ds...)
				done += len(ds)
			}
			search(b, e, "finished")
		})
	}
}

func search(b *testing.B, e *sqlite.Engine, state string) {
	start := time.Now()
	if err := e.Sign(1024); err != nil {
		b.Fatal(err)
	}
	b.Logf("%s: signed in %s", state, time.Since(start))
	for name, term := range map[string]engine.PayloadTerm{
		"rare": {Path: []string{"user", "id"}, Value: "42"}, "none": {Path: []string{"user", "id"}, Value: "43"},
		"ten": {Path: []string{"user", "id"}, Value: "2345"}, "thousand": {Path: []string{"shard"}, Value: "77"},
		"common": {Path: []string{"width"}, Value: "123"},
	} {
		var took []time.Duration
		q := engine.JobQuery{Filter: engine.JobFilter{Payload: []engine.PayloadTerm{term}}}
		n := 0
		for range 20 {
			start := time.Now()
			page, err := e.Jobs(context.Background(), q)
			if err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
			n = len(page.Jobs)
		}
		slices.Sort(took)
		b.Logf("%s %s: %d jobs, p50 %s p95 %s", state, name, n, took[len(took)/2], took[len(took)*95/100])
	}
}
