package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"

	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/event"
)

type benchCmd struct {
	Data   string `placeholder:"DIR" help:"Measure the disk of this folder; a folder of its own is made there and removed (default: the one for temporary files)."`
	Rounds int    `default:"3" help:"How often each pair is measured, in turns."`
}

func (benchCmd) Help() string {
	return `It measures this machine, as ratios: what the program does beside the least that
could be done, one after the other, several times; medians are told. It takes about
half a minute and starts a server of its own on a free port.

Examples:
  forebay bench
  forebay bench --data /var/lib --rounds 5 --json`
}

const (
	benchClients = 64
	benchCalls   = 32_000
	benchBatch   = 100
)

// comparison is one line of the result: ours beside a baseline.
type comparison struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Ours     float64 `json:"ours"`
	Baseline float64 `json:"baseline,omitempty"` // 0: there is none
	Ratio    float64 `json:"ratio,omitempty"`
	Spread   float64 `json:"spread"` // of the ratio, or of ours: from the least to the most, as a share
}

func (c *benchCmd) Run(ctx context.Context, p *program) (err error) {
	dir, err := os.MkdirTemp(c.Data, "forebay-bench-")
	if err != nil {
		return folderError(c.Data, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &benchmark{dir: dir, rounds: max(c.Rounds, 1)}
	if err := errors.Join(b.engine(ctx), b.accept(ctx)); err != nil {
		return err
	}
	return p.print(b.results, func(w io.Writer) {
		fmt.Fprintln(w, "\tforebay\tbaseline\tratio\tspread")
		for _, r := range b.results {
			baseline, ratio := "-", "-"
			if r.Baseline > 0 {
				baseline, ratio = humanize.Comma(int64(r.Baseline)), fmt.Sprintf("%.2f", r.Ratio)
			}
			fmt.Fprintf(w, "%s\t%s %s\t%s\t%s\t±%.0f %%\n", r.Name, humanize.Comma(int64(r.Ours)), r.Unit, baseline, ratio, r.Spread*50)
		}
	})
}

// benchmark collects comparisons.
type benchmark struct {
	dir     string
	rounds  int
	results []comparison
}

func (b *benchmark) add(name, unit string, ours, baseline bench.Series) {
	c := comparison{Name: name, Unit: unit, Ours: ours.Median(), Spread: ours.Spread()}
	if baseline != nil {
		var ratios bench.Series
		for i := range ours {
			ratios = append(ratios, ours[i]/baseline[i])
		}
		c.Baseline, c.Ratio, c.Spread = baseline.Median(), ratios.Median(), ratios.Spread()
	}
	b.results = append(b.results, c)
}

// engine compares durable sends with a bare log that is appended and flushed.
func (b *benchmark) engine(ctx context.Context) error {
	var bare, sent, drained bench.Series
	for round := range b.rounds {
		l, err := b.bareLog(ctx, round)
		if err != nil {
			return err
		}
		s, d, err := b.queue(ctx, round)
		if err != nil {
			return err
		}
		bare, sent, drained = append(bare, l.Rate()), append(sent, s.Rate()), append(drained, d.Rate())
	}
	b.add("durable send, 64 producers (baseline: append and flush)", "/s", sent, bare)
	b.add("receive and settle by 100", "/s", drained, nil)
	return nil
}

func (b *benchmark) bareLog(ctx context.Context, round int) (r bench.Result, err error) {
	log, err := bench.OpenLog(filepath.Join(b.dir, fmt.Sprintf("bare-%d.log", round)))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	record := bench.Payload()
	return bench.Load(ctx, benchClients, 2*benchCalls, 1, func(context.Context, int, int) error { return log.Append(record) })
}

func (b *benchmark) queue(ctx context.Context, round int) (sent, drained bench.Result, err error) {
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(b.dir, fmt.Sprintf("queue-%d.db", round))})
	if err != nil {
		return sent, drained, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if sent, err = bench.Send(ctx, e, benchClients, 1, bench.Messages(fmt.Sprint("round", round), 2*benchCalls)); err != nil {
		return sent, drained, err
	}
	drained, err = bench.Drain(ctx, e, 4, benchBatch, sent.N)
	return sent, drained, err
}

// accept compares a whole server with a bare handler that decodes the same JSON
// and answers 202. Both run in this process and so share it with the clients.
func (b *benchmark) accept(ctx context.Context) error {
	bare, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	baseline := &http.Server{Handler: bench.Bare()}
	served := make(chan error, 1)
	go func() { served <- baseline.Serve(bare) }()
	err = b.beside(ctx, "http://"+bare.Addr().String())
	err = errors.Join(err, baseline.Close())
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// beside runs a server on a fresh data folder and measures it in turns with the
// baseline.
func (b *benchmark) beside(ctx context.Context, baseline string) error {
	settings, err := config.Load(config.Sources{Flags: []config.Flag{
		{Key: "data.dir", Value: filepath.Join(b.dir, "server")}, {Key: "server.listen", Value: "127.0.0.1:0"},
		{Key: "server.grace", Value: "0s"},
	}})
	if err != nil {
		return err
	}
	s, err := openServer(settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	// What is measured is accepting: the sink would take its share of the machine.
	if err := s.broker.SetLimits(ctx, event.Queue, engine.QueueLimits{Paused: true}); err != nil {
		return errors.Join(err, s.close())
	}
	stop, ended := make(chan os.Signal, 1), make(chan error, 1)
	go func() { ended <- s.run(stop) }()
	err = b.compare(ctx, s.file.URL, baseline)
	stop <- os.Interrupt
	return errors.Join(err, <-ended)
}

func (b *benchmark) compare(ctx context.Context, ours, baseline string) error {
	one := []byte(`{"eventType":"app_open","userId":"user-4711","payload":` + string(bench.Payload()) + `}`)
	batch := []byte("[" + string(bytes.Join(repeat(one, benchBatch), []byte(","))) + "]")
	transport := &http.Transport{MaxIdleConnsPerHost: benchClients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for _, m := range []struct {
		name, path  string
		body        []byte
		calls, size int
	}{
		{"accept one by one, durable, 64 clients (baseline: bare handler)", "/ingest/event", one, benchCalls, 1},
		{"accept by 100, durable, 64 clients", "/ingest/batch", batch, benchCalls / 20, benchBatch},
	} {
		var us, bare bench.Series
		for range b.rounds {
			for url, into := range map[string]*bench.Series{ours: &us, baseline: &bare} {
				r, err := bench.Load(ctx, benchClients, m.calls, m.size, func(ctx context.Context, _, _ int) error {
					return post(ctx, client, url+m.path, m.body)
				})
				if err != nil {
					return err
				}
				*into = append(*into, r.Rate())
			}
		}
		b.add(m.name, "/s", us, bare)
	}
	return nil
}

func repeat(b []byte, n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = b
	}
	return all
}

func post(ctx context.Context, c *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return err
}
