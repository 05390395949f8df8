package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// peers are the programs that jobs are compared with. They run on a Redis of their
// own that syncs before it answers, as our engine does.
type peers struct {
	redis *exec.Cmd
	port  string
	asynq string // its program
}

const peersFolder = "bench/peers"

func startPeers(ctx context.Context, o options) (*peers, error) {
	for _, need := range []struct{ program, from string }{{"redis-server", "the Debian package redis-server"}, {"node", "the Debian package nodejs"}, {"npm", "the Debian package npm"}} {
		if _, err := exec.LookPath(need.program); err != nil {
			return nil, fmt.Errorf("%s is missing (%s)", need.program, need.from)
		}
	}
	p := &peers{asynq: filepath.Join(o.dir, "asynq")}
	for _, install := range []struct {
		folder string
		args   []string
	}{
		{"bullmq", []string{"npm", "ci", "--silent"}},
		{"asynq", []string{"go", "build", "-o", p.asynq, "."}},
	} {
		cmd := exec.CommandContext(ctx, install.args[0], install.args[1:]...)
		cmd.Dir = filepath.Join(peersFolder, install.folder)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", strings.Join(install.args, " "), err, out)
		}
	}
	return p, p.startRedis(ctx, o.dir)
}

func (p *peers) startRedis(ctx context.Context, dir string) error {
	addr, err := freeAddress()
	if err != nil {
		return err
	}
	p.port = addr[strings.LastIndexByte(addr, ':')+1:]
	dir = filepath.Join(dir, "redis")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	p.redis = exec.Command("redis-server", "--port", p.port, "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
	out, err := p.redis.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.redis.Start(); err != nil {
		return err
	}
	if err := waitLine(ctx, bufio.NewReader(out), "Ready to accept connections"); err != nil {
		return err
	}
	go io.Copy(io.Discard, out) // it ends with the process
	return nil
}

func (p *peers) stop() error {
	if err := p.redis.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return p.redis.Wait()
}

// flush empties Redis between the rounds.
func (p *peers) flush(ctx context.Context) error {
	return exec.CommandContext(ctx, "redis-cli", "-p", p.port, "flushall").Run()
}

// waitLine reads until a line has text in it, for at most two minutes.
func waitLine(ctx context.Context, r *bufio.Reader, text string) error {
	found := make(chan error, 1)
	go func() { // ends with the process, which closes its output
		for {
			line, err := r.ReadString('\n')
			if err != nil || strings.Contains(line, text) {
				found <- err
				return
			}
		}
	}()
	select {
	case err := <-found:
		if err != nil {
			return fmt.Errorf("no line %q: %w", text, err)
		}
		return nil
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("no line %q within two minutes", text)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func bullmq(args ...string) *exec.Cmd {
	cmd := exec.Command("node", append([]string{"bench.mjs"}, args...)...)
	cmd.Dir = filepath.Join(peersFolder, "bullmq")
	cmd.Stderr = os.Stderr
	return cmd
}

// bullmqJobs adds and works jobs, a process for each side, and gives jobs per second.
func (p *peers) bullmqJobs(ctx context.Context, jobs, inflight, concurrency int) (rate float64, err error) {
	worker := bullmq("work", p.port, strconv.Itoa(jobs), strconv.Itoa(concurrency))
	out, err := worker.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := worker.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = worker.Process.Kill() // it has nothing to finish
		_ = worker.Wait()
		err = errors.Join(err, p.flush(ctx))
	}()
	lines := bufio.NewReader(out)
	if err := waitLine(ctx, lines, "ready"); err != nil {
		return 0, err
	}
	started := time.Now()
	if err := bullmq("add", p.port, strconv.Itoa(jobs), strconv.Itoa(inflight)).Run(); err != nil {
		return 0, err
	}
	if err := waitLine(ctx, lines, "done"); err != nil {
		return 0, err
	}
	return float64(jobs) / time.Since(started).Seconds(), nil
}

func (p *peers) asynqJobs(ctx context.Context, jobs, inflight, concurrency int) (rate float64, err error) {
	cmd := exec.CommandContext(ctx, p.asynq, p.port, strconv.Itoa(jobs), strconv.Itoa(inflight), strconv.Itoa(concurrency))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewReader(out)
	if err := waitLine(ctx, lines, "ready"); err != nil {
		return 0, err
	}
	started := time.Now()
	if err := waitLine(ctx, lines, "done"); err != nil {
		return 0, err
	}
	rate = float64(jobs) / time.Since(started).Seconds()
	return rate, errors.Join(cmd.Wait(), p.flush(ctx))
}

// bullmqHTTP is a node:http server that adds a job for each POST.
func (p *peers) bullmqHTTP(ctx context.Context) (*process, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cmd := bullmq("http", p.port, addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := waitLine(ctx, bufio.NewReader(out), "ready"); err != nil {
		return nil, err
	}
	return &process{cmd: cmd, url: "http://" + addr}, nil
}
