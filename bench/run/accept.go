package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/forebayhq/forebay/bench"
)

const (
	connections = 64
	batchSize   = 100
)

// accept compares `POST /ingest/event` and a batch of 100 with the bare handler:
// one process each, 64 connections, wrk on the same machine. The queue is paused,
// so that what is measured is accepting; one line says what it is while the sink
// writes beside it.
func accept(ctx context.Context, o options, t *table) error {
	scripts, err := writeScripts(o.dir)
	if err != nil {
		return err
	}
	bare, err := startBare(ctx, o)
	if err != nil {
		return err
	}
	defer bare.stop()
	ours, err := startForebay(ctx, o, "accept")
	if err != nil {
		return err
	}
	defer ours.stop()

	draining, err := wrk(ctx, o, ours.url+"/ingest/event", scripts.single)
	if err != nil {
		return err
	}
	if err := ours.command(ctx, "queues", "pause", "events"); err != nil {
		return err
	}
	var single, bareSingle, batch, bareBatch, p99 bench.Series
	for range o.rounds {
		for _, m := range []struct {
			url, script string
			into        *bench.Series
			events      float64
		}{
			{bare.url + "/ingest/event", scripts.single, &bareSingle, 1},
			{ours.url + "/ingest/event", scripts.single, &single, 1},
			{bare.url + "/ingest/batch", scripts.batch, &bareBatch, batchSize},
			{ours.url + "/ingest/batch", scripts.batch, &batch, batchSize},
		} {
			r, err := wrk(ctx, o, m.url, m.script)
			if err != nil {
				return err
			}
			*m.into = append(*m.into, r.perSecond*m.events)
			if m.into == &single {
				p99 = append(p99, r.p99.Seconds()*1000)
			}
		}
	}
	t.figure("bare handler, single", "events/s", bareSingle)
	t.figure("forebay, single, durable", "events/s", single)
	t.figure("  p99", "ms", p99)
	t.figure("  while the sink writes", "events/s", bench.Series{draining.perSecond})
	t.figure("bare handler, by 100", "events/s", bareBatch)
	t.figure("forebay, by 100, durable", "events/s", batch)
	t.ratio("single / bare", single, bareSingle, 0.60)
	least := max(120_000, 3*single.Median())
	t.target("by 100", batch.Median(), "events/s", "≥ "+short(least), batch.Median() >= least)
	return nil
}

type scripts struct{ single, batch string }

// writeScripts writes what wrk sends: events of about 400 bytes without ids, so
// that each is a new one.
func writeScripts(dir string) (scripts, error) {
	event := `{"eventType":"app_open","userId":"user-4711","occurredAt":"2026-01-02T03:04:05.678Z","payload":` + string(bench.Payload()) + `}`
	batch := "[" + strings.TrimSuffix(strings.Repeat(event+",", batchSize), ",") + "]"
	s := scripts{filepath.Join(dir, "single.lua"), filepath.Join(dir, "batch.lua")}
	for path, body := range map[string]string{s.single: event, s.batch: batch} {
		lua := "wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = [==[" + body + "]==]\n"
		if err := os.WriteFile(path, []byte(lua), 0o600); err != nil {
			return scripts{}, err
		}
	}
	return s, nil
}

type wrkResult struct {
	perSecond float64
	p99       time.Duration
}

var (
	wrkRate = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	wrkP99  = regexp.MustCompile(`99%\s+([0-9.]+(?:us|ms|s|m))`)
	wrkBad  = regexp.MustCompile(`(?m)^\s*(Non-2xx or 3xx responses: .*|Socket errors: .*)$`)
)

func wrk(ctx context.Context, o options, url, script string) (wrkResult, error) {
	out, err := exec.CommandContext(ctx, "wrk", "-t1", "-c"+strconv.Itoa(connections), fmt.Sprintf("-d%ds", o.seconds), "--latency", "-s", script, url).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return wrkResult{}, errors.New("wrk is missing (the Debian package has the same name)")
	}
	if err != nil {
		return wrkResult{}, fmt.Errorf("wrk %s: %w", url, err)
	}
	if bad := wrkBad.FindSubmatch(out); bad != nil {
		return wrkResult{}, fmt.Errorf("wrk %s: %s", url, bad[1])
	}
	rate, p99 := wrkRate.FindSubmatch(out), wrkP99.FindSubmatch(out)
	if rate == nil || p99 == nil {
		return wrkResult{}, fmt.Errorf("wrk %s: cannot read its output: %s", url, out)
	}
	var r wrkResult
	if r.perSecond, err = strconv.ParseFloat(string(rate[1]), 64); err != nil {
		return r, err
	}
	r.p99, err = time.ParseDuration(string(p99[1]))
	return r, err
}

// process is a server under test.
type process struct {
	cmd       *exec.Cmd
	url, data string
	binary    string
}

func startBare(ctx context.Context, o options) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return start(ctx, exec.Command(self, "-child", "bare", addr), addr, "/", o.binary, "")
}

// startForebay starts the server on a fresh data folder, with the embedded sink.
func startForebay(ctx context.Context, o options, name string, more ...string) (*process, error) {
	if _, err := os.Stat(o.binary); err != nil {
		return nil, fmt.Errorf("%w: run `make build`", err)
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(o.dir, name)
	if len(more) == 0 {
		more = []string{"--sqs-listen", "off"}
	}
	cmd := exec.Command(o.binary, append([]string{"serve", "--data", data, "--listen", addr, "--set", "log.level=warn"}, more...)...)
	return start(ctx, cmd, addr, "/readyz", o.binary, data)
}

func start(ctx context.Context, cmd *exec.Cmd, addr, ready, binary, data string) (*process, error) {
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, "http://" + addr, data, binary}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(30 * time.Second)
	for {
		if res, err := http.Get(p.url + ready); err == nil {
			_ = res.Body.Close()
			if res.StatusCode != http.StatusServiceUnavailable {
				return p, nil
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), p.stop())
		case <-deadline:
			return nil, errors.Join(fmt.Errorf("%s is not ready", cmd), p.stop())
		}
	}
}

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Wait()
}

func (p *process) command(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, p.binary, append(args, "--url", p.url)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("forebay %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
