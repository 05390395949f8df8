//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// called is what a handler is told, whichever way it is called.
type called struct {
	JobID, Name, Queue string
	Data               plan
	Attempt            int
}

// target is the handler of what is pushed, and of the programs that servers run.
type target struct {
	mu   sync.Mutex // guards book
	book *book

	server  *http.Server
	url     string
	serving sync.WaitGroup
}

func startTarget() (*target, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &target{url: "http://" + l.Addr().String()}
	t.server = &http.Server{Handler: t}
	t.serving.Go(func() { _ = t.server.Serve(l) }) // until close
	return t, nil
}

// use tells whose runs come from now on.
func (t *target) use(b *book) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.book = b
}

func (t *target) close() {
	_ = t.server.Close()
	t.serving.Wait()
}

func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c called
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
	t.mu.Lock()
	b := t.book
	t.mu.Unlock()
	n := b.begin(c.JobID, c.Queue, c.Data, c.Attempt, time.Now())
	v := work(r.Context(), c.Data, c.Attempt)
	b.end(c.JobID, n, v, time.Now())
	switch v {
	case done:
		fmt.Fprintf(w, `{"run":%d}`, n.n)
	case failed:
		http.Error(w, "not now", http.StatusServiceUnavailable)
	case refused:
		http.Error(w, "never", http.StatusUnprocessableEntity)
	}
}

// work does what a plan says.
func work(ctx context.Context, p plan, attempt int) verdict {
	switch {
	case !rest(ctx, time.Duration(p.MS)*time.Millisecond):
		return gone
	case p.Perm:
		return refused
	case attempt <= p.Fail:
		return failed
	}
	return done
}

// program is the handler that a server runs as a program: it hands its job to the target.
func program(url string) int {
	job, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	res, err := http.Post(url, "application/json", bytes.NewReader(job))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return 1
	case res.StatusCode == http.StatusOK:
		fmt.Printf(`{"result":%s}`+"\n", text)
		return 0
	case res.StatusCode == http.StatusUnprocessableEntity:
		return 65
	}
	return 1
}

// puller is a worker that leases jobs. Now and then it holds one until its lease is over, and
// settles all the same.
type puller struct {
	b   *book
	s   *stand
	rng *rand.Rand
}

const pullLease = 4 * time.Second

type leased struct {
	Receipt, JobID string
	Attempt        int
	Data           plan
}

func (p *puller) run(ctx context.Context) {
	for ctx.Err() == nil {
		var list struct{ Items []leased }
		nodes := p.s.apis("/api/jobs")
		url := nodes[p.rng.IntN(len(nodes))].url()
		asked := time.Now() // the lease counts from then on, at the earliest
		err := ask(ctx, http.MethodPost, url+"/api/queues/pulled/lease", options{"max": 4, "wait": "1s", "leaseSeconds": pullLease.Seconds()}, &list)
		if err != nil {
			rest(ctx, 200*time.Millisecond)
			continue
		}
		for _, l := range list.Items {
			if time.Since(asked) < pullLease-time.Second { // else it may be somebody else's by now
				p.one(ctx, url, l, asked.Add(pullLease))
			}
		}
	}
}

func (p *puller) one(ctx context.Context, url string, l leased, until time.Time) {
	r := p.b.begin(l.JobID, "pulled", l.Data, l.Attempt, time.Now())
	stale := p.rng.IntN(40) == 0
	if stale {
		rest(ctx, time.Until(until.Add(1500*time.Millisecond)))
	}
	v := work(ctx, l.Data, l.Attempt)
	late := time.Now().After(until)
	said := map[verdict]string{done: "ack", failed: "retry", refused: "dead", gone: "release"}[v]
	item := options{"receipt": l.Receipt, "verdict": said}
	switch v {
	case done:
		item["result"] = options{"run": r.n}
	case failed, refused:
		item["cause"] = options{"code": string(v), "message": "as planned"}
	}
	if late { // what it will be told decides whether this is a verdict
		defer func() { p.b.end(l.JobID, r, v, time.Now()) }()
	} else {
		p.b.end(l.JobID, r, v, time.Now())
	}
	again := p.b.superseded(l.JobID, r)
	var answers struct {
		Items []struct{ Error *struct{ Code string } }
	}
	err := ask(context.WithoutCancel(ctx), http.MethodPost, url+"/api/leases/settle", options{"items": []options{item}}, &answers)
	if err != nil || !late {
		return // unanswered: it may have counted, or not
	}
	taken := len(answers.Items) == 1 && answers.Items[0].Error == nil
	p.b.stale(l.JobID, r, again, taken, time.Now())
	if !taken {
		v = gone
	}
}
