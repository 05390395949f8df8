package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// listAll pages through all jobs that a filter means.
func listAll(t testing.TB, e engine.JobLister, f engine.JobFilter, limit int) (jobs []forebay.Job) {
	t.Helper()
	q := engine.JobQuery{Filter: f, Limit: limit}
	for range 100_000 {
		page, err := e.Jobs(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Jobs) > limit {
			t.Fatalf("%d jobs on a page of %d", len(page.Jobs), limit)
		}
		if jobs = append(jobs, page.Jobs...); page.Next == "" {
			return jobs
		}
		q.After = page.Next
	}
	t.Fatal("the pages have no end")
	return nil
}

// scene makes random jobs, and knows them all.
type scene struct {
	t      *testing.T
	rng    *rand.Rand
	e      *sqlite.Engine
	ids    []string
	leased []forebay.Delivery
}

func (s *scene) pick(words ...string) string { return words[s.rng.IntN(len(words))] }

func (s *scene) payload() []byte {
	v := map[string]any{
		"user": map[string]any{"id": s.rng.IntN(40), "name": s.pick("Ann", "Zoë", "a \"b\"")},
		"tags": []any{s.rng.IntN(5), s.pick("x", "y"), map[string]any{"deep": s.rng.IntN(2) == 0}},
		"n":    s.rng.Float64(), "none": nil,
	}
	if s.rng.IntN(20) == 0 { // more than are kept of one payload
		for i := range 100 {
			v[fmt.Sprint("k", i)] = i * s.rng.IntN(3)
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *scene) send(n int) {
	var msgs []forebay.Message
	for range n {
		id := fmt.Sprint("j", len(s.ids))
		m := forebay.Message{
			ID: id, Queue: s.pick("q", "r"), Kind: s.pick("email.send", "email.read", "resize"), Payload: s.payload(),
			Priority: forebay.At(s.rng.IntN(3)), Group: s.pick("", "", "", "g1", "g2"),
			Job: &forebay.JobOptions{Tenant: s.pick("", "a", "b"), Owner: s.pick("", "o"), Parent: s.pick("", "p")},
		}
		for _, tag := range []string{"red", "green"} {
			if s.rng.IntN(3) == 0 {
				m.Job.Tags = append(m.Job.Tags, tag)
			}
		}
		if s.rng.IntN(6) == 0 {
			m.NotBefore = time.Now().Add(time.Hour)
		}
		if s.rng.IntN(8) == 0 {
			m.Job, m.Group = nil, "" // no job: it is not listed
		} else {
			s.ids = append(s.ids, id)
		}
		if m.Job == nil {
			m.ID = "m" + fmt.Sprint(s.rng.Uint64())
		}
		msgs = append(msgs, m)
	}
	send(s.t, s.e, msgs...)
}

func (s *scene) work(n int) {
	for _, q := range []string{"q", "r"} {
		ds, err := s.e.Receive(context.Background(), engine.Receive{Queue: q, Max: n})
		if err != nil {
			s.t.Fatal(err)
		}
		s.leased = append(s.leased, ds...)
	}
	s.rng.Shuffle(len(s.leased), func(i, j int) { s.leased[i], s.leased[j] = s.leased[j], s.leased[i] })
	var out []forebay.Settlement
	for _, d := range s.leased[:len(s.leased)*3/4] {
		one := forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Verdict(1 + s.rng.IntN(6))}
		if one.Verdict != forebay.Ack && one.Verdict != forebay.Release {
			one.Cause = forebay.Cause{Code: s.pick("timeout", "handler", "bad_data"), Message: s.pick("Took too LONG", "it broke")}
		}
		if one.Verdict == forebay.Retry && s.rng.IntN(2) == 0 {
			one.After = time.Hour
		}
		if one.Verdict == forebay.Ack {
			one.Result = []byte(`{"ok":true}`)
		}
		out = append(out, one)
	}
	s.leased = slices.Clone(s.leased[len(s.leased)*3/4:])
	errs, err := s.e.Settle(context.Background(), out)
	if err = errors.Join(append(errs, err)...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) change(n int) {
	var changes []engine.JobChange
	for range n {
		changes = append(changes, engine.JobChange{ID: s.ids[s.rng.IntN(len(s.ids))], Payload: s.payload()})
	}
	if _, err := s.e.Change(context.Background(), changes); err != nil {
		s.t.Fatal(err)
	}
	for range n / 4 {
		if _, err := s.e.Remove(context.Background(), []string{s.ids[s.rng.IntN(len(s.ids))]}); err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.e.Cancel(context.Background(), []string{s.ids[s.rng.IntN(len(s.ids))]}, "enough"); err != nil {
			s.t.Fatal(err)
		}
	}
}

// filter makes one that asks for a few things.
func (s *scene) filter() (f engine.JobFilter) {
	for range 1 + s.rng.IntN(3) {
		switch s.rng.IntN(12) {
		case 0:
			f.States = append(f.States, forebay.States[s.rng.IntN(len(forebay.States))], forebay.States[s.rng.IntN(len(forebay.States))])
		case 1:
			f.Queue = s.pick("q", "r", "none")
		case 2:
			f.Kind = s.pick("email.*", "*size", "resize", "email.send", "none")
		case 3:
			f.Group = s.pick("g1", "g3")
		case 4:
			f.Tenant, f.Owner = s.pick("a", "b"), s.pick("", "o")
		case 5:
			f.Tags = []string{"red", "green"}[:1+s.rng.IntN(2)]
		case 6:
			f.Code = s.pick("timeout", "handler", "cancelled")
		case 7:
			f.Error = s.pick("too long", "BROKE", "none")
		case 8:
			f.ID = s.ids[s.rng.IntN(len(s.ids))]
		case 9:
			f.Since = time.Now().Add(-time.Duration(s.rng.IntN(3)) * time.Second)
		case 10:
			f.Until = time.Now().Add(-time.Duration(s.rng.IntN(3)) * time.Second)
		default:
			f.Payload = append(f.Payload, [...]engine.PayloadTerm{
				{Path: []string{"user", "id"}, Value: fmt.Sprint(s.rng.IntN(50))},
				{Path: []string{"user", "name"}, Value: s.pick("Zoë", "a \"b\"", "nobody")},
				{Path: []string{"tags"}, Value: s.pick("3", "x", "9")},
				{Path: []string{"tags", "deep"}, Value: "true"},
				{Path: []string{"k77"}, Value: "154"},
			}[s.rng.IntN(5)])
		}
	}
	return f
}

// check compares listings with all that the ledger tells of each job.
func (s *scene) check(filters int) {
	s.t.Helper()
	known, text := map[string]forebay.Job{}, map[string]string{}
	for _, id := range s.ids {
		job, err := s.e.Job(context.Background(), id)
		if forebay.CodeOf(err) == forebay.CodeNotFound {
			continue // removed
		}
		if err != nil {
			s.t.Fatal(err)
		}
		known[id], text[id] = job, asJSON(s.t, job)
	}
	for range filters {
		f := s.filter()
		got := listAll(s.t, s.e, f, 1+s.rng.IntN(60))
		s.inOrder(got)
		seen := map[string]bool{}
		for i := range got {
			id := got[i].ID
			if have := asJSON(s.t, got[i]); seen[id] || have != text[id] {
				s.t.Fatalf("%+v lists %s\nwhere the ledger has %s, listed before: %t", f, have, text[id], seen[id])
			}
			seen[id] = true
		}
		for id, job := range known {
			if f.Match(&job) != seen[id] {
				s.t.Fatalf("%+v lists %s: %t, %s", f, id, seen[id], text[id])
			}
		}
	}
}

func asJSON(t testing.TB, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s *scene) inOrder(jobs []forebay.Job) {
	s.t.Helper()
	section := map[forebay.State]int{forebay.StateActive: 0, forebay.StateWaiting: 1, forebay.StateDelayed: 1, forebay.StateDead: 2}
	of := func(j *forebay.Job) int {
		if n, ok := section[j.State]; ok {
			return n
		}
		return 3
	}
	for i := 1; i < len(jobs); i++ {
		a, b := &jobs[i-1], &jobs[i]
		switch {
		case of(a) > of(b):
			s.t.Fatalf("%s comes before %s", a.State, b.State)
		case of(a) < of(b):
		case of(a) == 2 && a.DeadSeq <= b.DeadSeq, of(a) == 3 && a.FinishedAt.Before(b.FinishedAt), of(a) < 2 && a.SentAt.Before(b.SentAt):
			s.t.Fatalf("not in order: %+v, then %+v", a, b)
		}
	}
}

// Listings are what a look at each job would give, with signatures and without.
func TestJobsRandom(t *testing.T) {
	for _, store := range []string{"memory", "file"} {
		t.Run(store, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			cfg := sqlite.Config{Durability: sqlite.DurabilityProcess}
			if store == "file" {
				cfg.Path = filepath.Join(t.TempDir(), "forebay.db")
			}
			s := &scene{t: t, rng: rand.New(rand.NewPCG(seed, 0)), e: mustOpen(t, cfg)}
			defer func() { s.e.Close() }()
			for round := range 3 {
				for range 15 {
					s.send(s.rng.IntN(20) + 1)
					s.work(s.rng.IntN(8) + 1)
				}
				s.check(8)
				if err := s.e.Sign(30); err != nil {
					t.Fatal(err)
				}
				s.change(20) // what has a signature, too
				s.check(12)
				if err := s.e.Sign(30); err != nil {
					t.Fatal(err)
				}
				s.check(12)
				if store == "file" && round%2 == 1 {
					if err := s.e.Close(); err != nil {
						t.Fatal(err)
					}
					s.e, s.leased = mustOpen(t, cfg), nil
					s.check(6)
				}
			}
			if n := rows(t, s.e, "SELECT count(*) FROM sig"); n < 5 {
				t.Fatalf("%d signatures", n)
			}
		})
	}
}

func TestJobsBounds(t *testing.T) {
	e := open(t, sqlite.Config{})
	for _, q := range []engine.JobQuery{{Limit: -1}, {Limit: engine.MaxJobs + 1}, {After: "x"}, {After: "9.1.1"}, {After: "1.1.1 "}, {After: "1.-1.1"}, {After: strings.Repeat("9", 99)}} {
		_, err := e.Jobs(context.Background(), q)
		wantCode(t, err, forebay.CodeInvalid)
	}
}
