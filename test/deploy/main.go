// Command deploy is the user in the test of deployments (run.sh): it sends events at a steady rate to a URL and remembers what was acknowledged.
// It promises that each event has an id of its own and is sent once; a request that is not
// answered with 202 and the id of the event counts as failed, for whatever reason, and is not
// tried again: a user of the service would have seen it. It refuses to judge what became of
// the events: it writes the ids of those that were acknowledged to a file.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	url := flag.String("url", "", "where to send to, without a path")
	rate := flag.Int("rate", 500, "events a second")
	acked := flag.String("acked", "", "file for the ids of what was acknowledged")
	flag.Parse()
	if err := run(*url, *rate, *acked); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

const connections = 512 // most at once

// load is what happened so far.
type load struct {
	url    string
	client *http.Client

	mu     sync.Mutex
	acked  []string
	took   []time.Duration
	failed int
	first  []string // of the failures, with their times
}

func run(url string, rate int, file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// Connections are kept for less time than balancers keep them, as clients must: one that
	// is closed while a request is on its way to it is a failure that nobody can tell from others.
	l := &load{url: url, client: &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections, IdleConnTimeout: 3 * time.Second},
	}}
	began := time.Now()
	l.send(ctx, began, rate)
	return l.report(file, time.Since(began))
}

// send starts each event at its time, whether those before are answered or not.
func (l *load) send(ctx context.Context, began time.Time, rate int) {
	var sending sync.WaitGroup
	defer sending.Wait()
	each := time.Second / time.Duration(rate)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		timer.Reset(time.Until(began.Add(time.Duration(n) * each)))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		id := fmt.Sprintf("%d-%d", began.UnixNano(), n)
		sending.Go(func() { l.one(id) })
	}
}

func (l *load) one(id string) {
	body := fmt.Sprintf(`{"eventId":%q,"eventType":"deploy","payload":{"n":%q},"userId":"u"}`, id, id)
	began := time.Now()
	err := l.post(body, fmt.Sprintf(`"messageId":%q`, id))
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed++
		if len(l.first) < 5 {
			l.first = append(l.first, time.Now().Format(time.TimeOnly)+" "+err.Error())
		}
		return
	}
	l.acked, l.took = append(l.acked, id), append(l.took, took)
}

func (l *load) post(body, want string) error {
	resp, err := l.client.Post(l.url+"/ingest/event", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusAccepted || !strings.Contains(string(text), want)) {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return err
}

// report prints one line, and fails when a request did.
func (l *load) report(file string, took time.Duration) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for _, id := range l.acked {
		fmt.Fprintln(w, id)
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return err
	}
	slices.Sort(l.took)
	at := func(part float64) time.Duration {
		if len(l.took) == 0 {
			return 0
		}
		return l.took[int(part*float64(len(l.took)-1))].Round(time.Millisecond)
	}
	fmt.Printf("acknowledged %d, failed %d, %.0f/s, p50 %s, p99 %s, most %s\n",
		len(l.acked), l.failed, float64(len(l.acked))/took.Seconds(), at(0.5), at(0.99), at(1))
	if l.failed > 0 {
		return fmt.Errorf("%d requests failed, the first: %s", l.failed, strings.Join(l.first, "\n"))
	}
	return nil
}
