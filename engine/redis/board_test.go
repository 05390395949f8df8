package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// board asks bull-board's API for a path, and gives the body of its answer.
func (p *pair) board(method, path string, query args) any {
	p.t.Helper()
	r := p.n.do("board", args{"queue": "q", "method": method, "path": path, "query": query})
	if status := r["status"].(float64); status >= 300 {
		p.t.Fatalf("bull-board answered %s %s with %v: %v", method, path, status, r["body"])
	}
	return r["body"]
}

// onBoard gives what it shows of the queue: its counts, and the jobs of a state by id.
func (p *pair) onBoard(status string) (counts args, jobs map[string]args) {
	p.t.Helper()
	q := p.board("get", "/api/queues", args{"activeQueue": "q", "status": status, "page": "1"}).(args)["queues"].([]any)[0].(args)
	jobs = make(map[string]args)
	for _, j := range q["jobs"].([]any) {
		jobs[j.(args)["id"].(string)] = j.(args)
	}
	return q["counts"].(args), jobs
}

// bull-board shows jobs of either side, and what is done on it holds here.
func TestBullBoard(t *testing.T) {
	versions(t, func(p *pair) {
		p.send(jobOf("fails", nil), jobOf("late", func(m *forebay.Message) { m.NotBefore = time.Now().Add(time.Hour) }))
		theirs := p.add("mail", args{"to": "a@b"}, args{"attempts": 2})
		d := p.one("fails")
		told, err := p.e.Progress(p.t.Context(), []forebay.ProgressUpdate{{
			Receipt: d.Receipt, Progress: &forebay.Progress{Stage: "half", Percent: 50}, Log: []forebay.LogLine{{Text: "one"}, {Text: "two"}},
		}})
		if err != nil || told[0] != nil {
			p.t.Fatalf("progress: %v, %v", told, err)
		}
		if _, jobs := p.onBoard("active"); encode(p.t, jobs["fails"]["data"]) != `{"n":1}` || encode(p.t, jobs["fails"]["progress"].(args)["percent"]) != "50" {
			p.t.Fatalf("active are %v", jobs)
		}
		if lines := p.board("get", "/api/queues/q/fails/logs", nil); encode(p.t, lines) != `["one","two"]` {
			p.t.Fatalf("logs are %v", lines)
		}
		p.settle(d, forebay.Dead, "")
		p.settle(p.one(theirs), forebay.Ack, `{"sent":true}`)
		counts, failed := p.onBoard("failed")
		want := args{"active": 0, "completed": 1, "delayed": 1, "failed": 1, "prioritized": 0, "waiting": 0, "waiting-children": 0}
		if !includes(p.t, counts, want) {
			p.t.Fatalf("counts are %v, want %v", counts, want)
		}
		if j := failed["fails"]; j["failedReason"] != "failed on purpose" || j["name"] != "work" || j["isFailed"] != true || j["attempts"] != 1.0 || j["stacktrace"].([]any)[0] != "failed on purpose" {
			p.t.Fatalf("failed are %v", failed)
		}
		one := p.board("get", "/api/queues/q/"+theirs, nil).(args)
		if one["status"] != "completed" || encode(p.t, one["job"].(args)["returnValue"]) != `{"sent":true}` || one["job"].(args)["name"] != "mail" {
			p.t.Fatalf("%s is %v", theirs, one)
		}

		p.board("put", "/api/queues/q/fails/retry", nil)
		if j, err := p.e.Job(p.t.Context(), "fails"); err != nil || j.State != forebay.StateWaiting {
			p.t.Fatalf("retried on the board it is %+v, %v", j, err)
		}
		p.settle(p.one("fails"), forebay.Ack, "1")
		p.board("put", "/api/queues/q/late/promote", nil)
		p.board("put", "/api/queues/q/pause", nil)
		if ds, err := p.e.Receive(p.t.Context(), engine.Receive{Queue: "q", Max: 1}); err != nil || len(ds) > 0 {
			p.t.Fatalf("a queue that the board paused gave %v, %v", ds, err)
		}
		p.board("put", "/api/queues/q/resume", nil)
		p.settle(p.one("late"), forebay.Ack, "")
		if j, err := p.e.Job(p.t.Context(), "fails"); err != nil || j.State != forebay.StateCompleted || string(j.Result) != "1" {
			p.t.Fatalf("after its retry on the board it is %+v, %v", j, err)
		}
		p.board("put", "/api/queues/q/fails/clean", nil)
		if j, err := p.e.Job(p.t.Context(), "fails"); forebay.CodeOf(err) != forebay.CodeNotFound {
			p.t.Fatalf("cleaned on the board it is %+v, %v", j, err)
		}
		if got := strings.Join(p.listed(engine.JobFilter{}), " "); got != "late completed q:"+theirs+" completed" {
			p.t.Fatalf("in the end there are %s", got)
		}
	})
}

// includes tells whether one has all of another.
func includes(t testing.TB, all, some args) bool {
	for k, v := range some {
		if encode(t, all[k]) != encode(t, v) {
			return false
		}
	}
	return true
}
