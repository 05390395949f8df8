//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// report is what a run was, and what it found.
type report struct {
	Seed     uint64          `json:"seed"`
	For      string          `json:"for"`
	Began    time.Time       `json:"began"`
	Ended    time.Time       `json:"ended"`
	Versions []string        `json:"versions"`
	Clock    string          `json:"clock"`
	CPUs     int             `json:"cpus"`
	Engines  []*engineReport `json:"engines"`
}

type engineReport struct {
	Engine   string         `json:"engine"`
	Rounds   int            `json:"rounds"`
	Seconds  float64        `json:"seconds"`
	Counts   counts         `json:"counts"`
	Faults   map[string]int `json:"faults"`
	NotDone  []string       `json:"faultsNotDone,omitempty"`
	Memory   []growth       `json:"memory"`
	Idle     []idleSize     `json:"idleAfterEachRound"`
	Findings []finding      `json:"findings"`
	Error    string         `json:"error,omitempty"`
}

func newReport(ctx context.Context, cfg *config) *report {
	r := &report{Seed: cfg.seed, For: cfg.length.String(), Began: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), Clock: "cannot be moved"}
	if cfg.clock {
		r.Clock = "built with a clock that can be moved"
	}
	for _, line := range [][]string{{cfg.binary, "version"}, {"git", "describe", "--always", "--dirty"}, {"redis-server", "--version"}, {"psql", "--version"}, {"uname", "-sr"}} {
		out, err := exec.CommandContext(ctx, line[0], line[1:]...).Output()
		if err == nil {
			r.Versions = append(r.Versions, strings.TrimSpace(string(out)))
		}
	}
	return r
}

func (b *book) broken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.findings) > 0
}

// conclude copies what the book has, and asks for the history of the first findings.
func (e *engineReport) conclude(ctx context.Context, b *book, s *stand) {
	const histories = 10
	b.mu.Lock()
	e.Counts, e.Findings = b.counts, slices.Clone(b.findings)
	b.mu.Unlock()
	for i := range e.Findings[:min(len(e.Findings), histories)] {
		e.Findings[i].History = s.history(ctx, e.Findings[i])
	}
}

// print tells how it went, and whether all is well.
func (r *report) print(show *display) bool {
	ok := true
	for _, e := range r.Engines {
		c := e.Counts
		show.line("%s: %d rounds in %.0f s: %d events, %d jobs, %d runs of flows, %d ticks; %d runs, %d of them again, %d failed",
			e.Engine, e.Rounds, e.Seconds, c.EventsAcked, c.JobsAcked, c.FlowRuns, c.ScheduleTicks, c.Runs, c.RunsAgain, c.RunsFailed)
		show.line("  checked: %d rows, %d ends, %d places in an order, %d counts against limits; %d stale settles, %d refused",
			c.RowsChecked, c.Completed+c.Dead+c.Cancelled, c.OrdersChecked, c.WindowsChecked, c.StaleSettles, c.StaleRefused)
		show.line("  faults: %s", list(e.Faults))
		for _, not := range e.NotDone {
			show.line("  NOT DONE: %s", not)
		}
		if c.EarlyAfterJump > 0 {
			show.line("  %d delays were cut short by a clock that was moved meanwhile (docs/soak.md)", c.EarlyAfterJump)
		}
		for _, g := range e.Memory {
			short := ""
			if g.Short {
				short = " (too short to be judged)"
			}
			show.line("  memory: %s, %+.0f KiB a minute%s", g, g.KiBPerMin, short)
		}
		if e.Error != "" {
			ok = false
			show.line("  ERROR: %s", e.Error)
		}
		for i, f := range e.Findings {
			ok = false
			if i == 20 {
				show.line("  … and %d more, in the report", len(e.Findings)-i)
				break
			}
			show.line("  BROKEN %s (%s): %s\n%s", f.Rule, f.Subject, f.Text, indent(f.History))
		}
	}
	if ok {
		show.line("soak: nothing lost, nothing broken; seed %d", r.Seed)
	} else {
		show.line("soak: FAILED; seed %d", r.Seed)
	}
	return ok
}

func list(counts map[string]int) string {
	var all []string
	for name, n := range counts {
		all = append(all, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func indent(text string) string {
	if text == "" {
		return ""
	}
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") + "\n"
}

func (r *report) write(file string) error {
	if file == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

// display shows where a run is: one line that changes on a terminal, a line now and then elsewhere.
type display struct {
	out   io.Writer
	fixed bool // no terminal: lines stay

	mu      sync.Mutex // guards all below
	engine  string
	b       *book
	n       int
	share   time.Duration
	begun   time.Time
	what    string
	last    string
	lastAt  time.Time
	stop    chan struct{}
	drawing sync.WaitGroup
}

func newDisplay(out *os.File, _ *config) *display {
	info, err := out.Stat()
	return &display{out: out, fixed: err != nil || info.Mode()&os.ModeCharDevice == 0}
}

func (d *display) line(format string, args ...any) {
	if !d.fixed {
		fmt.Fprint(d.out, "\r\x1b[K")
	}
	fmt.Fprintf(d.out, format+"\n", args...)
}

func (d *display) begin(engine string, b *book) {
	d.mu.Lock()
	d.engine, d.b, d.begun, d.what, d.last = engine, b, time.Now(), "starting", ""
	d.n, d.share = 0, 0
	d.stop = make(chan struct{})
	stop := d.stop
	d.mu.Unlock()
	every := time.Second
	if d.fixed {
		every = 15 * time.Second
	}
	d.drawing.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				d.draw()
			case <-stop:
				return
			}
		}
	})
}

func (d *display) finish() {
	close(d.stop)
	d.drawing.Wait()
}

func (d *display) state(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.what = what
}

func (d *display) round(n int, passed, share time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n, d.share, d.begun, d.what = n, share, time.Now().Add(-passed), "under load"
}

func (d *display) fault(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last, d.lastAt = name, time.Now()
}

func (d *display) draw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.b.mu.Lock()
	c, broken := d.b.counts, len(d.b.findings)
	d.b.mu.Unlock()
	const width = 20
	full := 0
	if d.share > 0 {
		full = min(width, int(width*time.Since(d.begun)/d.share))
	}
	last := ""
	if d.last != "" {
		last = fmt.Sprintf("; last: %s, %.0f s ago", d.last, time.Since(d.lastAt).Seconds())
	}
	text := fmt.Sprintf("[%s%s] %s %s/%s round %d %s: %d events, %d jobs, %d runs, %d broken%s",
		strings.Repeat("#", full), strings.Repeat(".", width-full), d.engine, time.Since(d.begun).Round(time.Second), d.share.Round(time.Second),
		d.n, d.what, c.EventsAcked, c.JobsAcked, c.Runs, broken, last)
	if d.fixed {
		fmt.Fprintln(d.out, text)
		return
	}
	fmt.Fprint(d.out, "\r\x1b[K"+text)
}
