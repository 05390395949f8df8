package sealed_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/engine/sealed"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/internal/redistest"
)

// Sealed, an engine behaves as it does plain. Bytes that cannot be compressed fit less.
func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open: func(t testing.TB) engine.Engine {
			logged := sqlite.LogConfig{Ages: map[string]time.Duration{"logged": time.Hour}}
			return over(t, must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{Log: logged})), keys(t, "k1"))
		},
		Only: []string{
			"send", "dedup", "receive", "settle", "next", "group", "dead", "replay", "deadgroup", "locate", "purge", "close",
			"late", "peek", "log", "ledger", "verdict", "history", "cancel", "dedup mode", "change", "document", "listing", "bad job",
		},
	})
}

// What is kept over a restart is kept sealed.
func TestConformanceOfRestarts(t *testing.T) {
	type stored struct {
		*sealed.Engine
		path string
	}
	open := func(t testing.TB, path string) engine.Engine {
		return stored{over(t, file(t, path), keys(t, "k1")), path}
	}
	enginetest.Run(t, enginetest.Harness{
		Open: func(t testing.TB) engine.Engine { return open(t, filepath.Join(t.TempDir(), "forebay.db")) },
		Reopen: func(t testing.TB, e engine.Engine) engine.Engine {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, e.(stored).path)
		},
		Only: []string{"reopen"},
	})
}

// everything goes through an engine: messages, jobs that end in each way, with progress, lines, a
// change and a duplicate that replaces, documents, dead letters.
func everything(t testing.TB, e engine.Engine) {
	t.Helper()
	debounced := job("debounced")
	debounced.DedupKey, debounced.Job.Dedup = "key", forebay.DedupDebounce
	debounced.NotBefore = time.Now().Add(time.Hour)
	newer := debounced
	newer.ID, newer.Payload = "newer", []byte(`"`+secret+`, newer"`)
	later := job("later")
	later.NotBefore = debounced.NotBefore
	send(t, e, forebay.Message{ID: "plain", Queue: "q", Payload: []byte(secret)}, job("done"), job("dead"), job("again"), debounced, newer, later)
	jobs := as[engine.Jobs](t, e)
	for _, d := range take(t, e, 4) {
		g := &forebay.Progress{Stage: "half", Percent: 50, Message: "for " + secret, Data: []byte(`{"of":"` + secret + `"}`)}
		lines := []forebay.LogLine{{At: time.Now(), Text: "to " + secret}, {At: time.Now(), Text: strings.Repeat(secret+" ", 200)}}
		if d.Job != nil {
			for _, err := range must[[]error](t)(jobs.Progress(t.Context(), []forebay.ProgressUpdate{{Receipt: d.Receipt, Progress: g, Log: lines}})) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		s := forebay.Settlement{Receipt: d.Receipt, Queue: "q", Verdict: forebay.Ack, Result: []byte(`{"is": "` + secret + `"}`)}
		why := forebay.Cause{Code: "refused", Message: "no such user: " + secret, Detail: map[string]string{"user": secret}, At: time.Now()}
		switch d.ID {
		case "dead":
			s.Verdict, s.Cause, s.Result = forebay.Dead, why, nil
		case "again":
			s.Verdict, s.Cause, s.Result, s.After = forebay.Retry, why, nil, time.Hour
		}
		settle(t, e, s)
	}
	for _, err := range must[[]error](t)(jobs.Change(t.Context(), []engine.JobChange{{ID: "later", Payload: []byte(`"` + secret + `, changed"`)}})) {
		if err != nil {
			t.Fatal(err)
		}
	}
	docs := as[engine.Documents](t, e)
	must[engine.Document](t)(docs.PutDocument(t.Context(), engine.Document{Collection: "c", Key: "k", Value: []byte(secret)}))
}

// allOpens tells whether what everything stored is read as it was.
func allOpens(t testing.TB, e engine.Engine) {
	t.Helper()
	want := func(what, got, wanted string) {
		t.Helper()
		if got != wanted {
			t.Errorf("%s is %q, want %q", what, got, wanted)
		}
	}
	jobs := as[engine.Jobs](t, e)
	one := func(id string) forebay.Job { return must[forebay.Job](t)(jobs.Job(t.Context(), id)) }
	done, again := one("done"), one("again")
	want("result", string(done.Result), `{"is": "`+secret+`"}`)
	want("payload", string(done.Payload), string(job("").Payload))
	want("replaced payload", string(one("debounced").Payload), `"`+secret+`, newer"`)
	want("changed payload", string(one("later").Payload), `"`+secret+`, changed"`)
	want("progress", done.Progress.Message+string(done.Progress.Data)+done.Progress.Stage, "for "+secret+`{"of":"`+secret+`"}half`)
	want("failure", again.Failures[0].Message+again.Failures[0].Detail["user"], "no such user: "+secret+secret)
	letters := dead(t, e)
	want("dead letter", letters[0].Cause.Message+" "+letters[0].Cause.Code+string(letters[0].Message.Payload), "no such user: "+secret+" refused"+string(job("").Payload))
	groups := must[engine.DeadGroupPage](t)(as[engine.DeadGroups](t, e).DeadGroups(t.Context(), engine.DeadGroupQuery{}))
	want("group", groups.Groups[0].Text, "no such user: "+secret)
	doc := must[engine.Document](t)(as[engine.Documents](t, e).Document(t.Context(), "c", "k"))
	want("document", string(doc.Value), secret)

	page := must[engine.HistoryPage](t)(as[engine.History](t, e).History(t.Context(), engine.HistoryQuery{}))
	text := string(must[[]byte](t)(json.Marshal(page.Events)))
	if n := strings.Count(text, secret); n < 15 || strings.Contains(text, "sealed") {
		t.Errorf("the history tells the secret %d times: %s", n, text)
	}
	lister := as[engine.JobLister](t, e)
	for name, f := range map[string]engine.JobFilter{
		"payload": {Payload: []engine.PayloadTerm{{Path: []string{"to"}, Value: secret}}}, "error": {Error: "NO SUCH user"},
	} {
		n := 0
		for q := (engine.JobQuery{Filter: f, Limit: 2}); ; {
			page := must[engine.JobPage](t)(lister.Jobs(t.Context(), q))
			if n += len(page.Jobs); page.Next == "" {
				break
			}
			q.After = page.Next
		}
		want("found by "+name, fmt.Sprint(n), map[string]string{"payload": "3", "error": "2"}[name])
	}
}

// Nothing of what is sealed is in the files; all of it is read again by who has the key.
func TestNothingIsInTheFiles(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]*sealed.Keys{"sealed": keys(t, "k1"), "plain": opening(t, "k1")} {
		dir := t.TempDir()
		e := over(t, file(t, filepath.Join(dir, "forebay.db")), k)
		everything(t, e)
		allOpens(t, e)
		if files := found(t, dir); name == "sealed" != (len(files) == 0) {
			t.Errorf("%s: while it is open the secret is in %v", name, files)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if files := found(t, dir); name == "sealed" != (len(files) == 0) {
			t.Errorf("%s: the secret is in %v", name, files)
		}
		again := over(t, file(t, filepath.Join(dir, "forebay.db")), k)
		allOpens(t, again)
		again.Close()
	}
}

// The same on Redis, by its own dump, and what a Node worker would be given is no secret.
func TestNothingIsInRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config{})
	e := over(t, must[*redis.Engine](t)(redis.Open(t.Context(), redis.Config{URL: server.URL(0)})), keys(t, "k1"))
	defer e.Close()
	everything(t, e)
	allOpens(t, e)
	ds := must[[]engine.Document](t)(as[engine.Documents](t, e).Documents(t.Context(), "c", "", 10))
	if len(ds) != 1 || string(ds[0].Value) != secret {
		t.Errorf("documents %v", ds)
	}
	dump := filepath.Join(t.TempDir(), "dump.rdb")
	if out, err := exec.Command("redis-cli", "-u", server.URL(0), "--rdb", dump).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if files := found(t, filepath.Dir(dump)); len(files) > 0 {
		t.Errorf("the secret is in %v", files)
	}
	if out, err := exec.Command("redis-cli", "-u", server.URL(0), "HGETALL", "bull:q:later").CombinedOutput(); err != nil || !strings.Contains(string(out), "data") || strings.Contains(string(out), secret) {
		t.Errorf("%v: %s", err, out)
	}
}

// Encryption that is switched on over what is there, and off again.
func TestOnAndOff(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forebay.db")
	inner := file(t, path)
	defer inner.Close()
	if used, err := sealed.Used(t.Context(), inner); used || err != nil {
		t.Fatal(used, err)
	}
	send(t, inner, job("before"))
	on := over(t, inner, keys(t, "k1"))
	send(t, on, job("on"))
	off := over(t, inner, opening(t, "k1"))
	send(t, off, job("off"))
	for _, d := range take(t, off, 3) {
		if string(d.Payload) != string(job("").Payload) {
			t.Errorf("%s says %q", d.ID, d.Payload)
		}
	}
	raw := must[forebay.Job](t)(inner.Job(t.Context(), "on"))
	plain := must[forebay.Job](t)(inner.Job(t.Context(), "off"))
	if strings.Contains(string(raw.Payload), secret) || !strings.Contains(string(plain.Payload), secret) {
		t.Errorf("stored are %q and %q", raw.Payload, plain.Payload)
	}
	if used, err := sealed.Used(t.Context(), inner); !used || err != nil {
		t.Error(used, err)
	}
	if _, err := sealed.New(t.Context(), inner, sealed.Config{Keys: must[*sealed.Keys](t)(sealed.NewKeys("", nil))}); forebay.CodeOf(err) != forebay.CodeUnauthorized {
		t.Errorf("without its key the store opens: %v", err)
	}
}

// What the engine behind cannot do, the one in front cannot either.
func TestAbilitiesAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	type bare struct{ engine.Engine }
	inner := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))
	defer inner.Close()
	poor, rich := over(t, bare{inner}, keys(t, "k1")), over(t, inner, keys(t, "k1"))
	for name, has := range map[string][2]bool{
		"jobs": has[engine.Jobs](poor, rich), "dead letters": has[engine.DeadLetters](poor, rich), "documents": has[engine.Documents](poor, rich),
		"log": has[engine.Log](poor, rich), "limiter": has[engine.Limiter](poor, rich), "late": has[engine.Late](poor, rich),
	} {
		if has != [2]bool{false, true} {
			t.Errorf("%s: %v", name, has)
		}
	}
	if _, ok := any(rich).(interface{ Unwrap() engine.Engine }); ok {
		t.Error("a way leads past the seals")
	}
	if _, ok := engine.As[engine.Redriver](rich); ok {
		t.Error("it can redrive, and SQLite cannot")
	}
}

func has[T any](poor, rich engine.Engine) [2]bool {
	_, a := engine.As[T](poor)
	_, b := engine.As[T](rich)
	return [2]bool{a, b}
}
