// Command run is `make bench`: it measures Forebay beside bare baselines on this
// machine and prints ratios, each with its target.
//
// It promises that the two sides of a ratio run one after the other, in turns, and
// that what is printed is the median with the spread of the rounds. It refuses to
// write anything but its output: bench/RESULTS.md is written by a person.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/forebayhq/forebay/bench"
)

// options of one run.
type options struct {
	binary  string // the program that `make build` made
	dir     string // where files are made, on the disk that is measured
	rounds  int
	seconds int // of one wrk run
	backlog int
	search  int // jobs that are searched
	history int // entries that the history holds
	replay  int // events that are replayed
	live    int // events a second beside it
	child   string
}

// part is one section of the run.
type part struct {
	name string
	run  func(ctx context.Context, o options, t *table) error
}

var parts = []part{
	{"accept", accept},
	{"engine", engineParts},
	{"sealed", sealedPart},
	{"backlog", backlog},
	{"latency", latency},
	{"idle", idle},
	{"jobs", jobs},
	{"redis", redisPart},
	{"postgres", postgresPart},
	{"flows", flows},
	{"starts", starts},
	{"streams", streams},
	{"search", search},
	{"history", historyPart},
	{"replay", replayPart},
	{"sqs", sqsEndpoint},
	{"sqs backlog", sqsBacklog},
	{"sqs idle", sqsIdle},
	{"sqs consumer", sqsConsumer},
	{"auto", autoPart},
}

func main() {
	var o options
	var only string
	flag.StringVar(&o.binary, "binary", "bin/forebay", "the program that `make build` made")
	flag.StringVar(&o.dir, "dir", "", "folder on the disk to measure; empty: a temporary one")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each comparison")
	flag.IntVar(&o.seconds, "seconds", 5, "length of one load run")
	flag.IntVar(&o.backlog, "backlog", 1_000_000, "messages that wait in the backlog part")
	flag.IntVar(&o.search, "search", 200_000, "jobs in the search part; the first 200,000 one per commit")
	flag.IntVar(&o.history, "history", 1_000_000, "entries that the history holds in the history part")
	flag.IntVar(&o.replay, "replay", 1_000_000, "events in the replay part")
	flag.IntVar(&o.live, "live", 500, "events a second beside it")
	flag.StringVar(&only, "only", "", "parts to run, separated by commas; empty: all")
	flag.StringVar(&o.child, "child", "", "for this program's own use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := func() error {
		if o.child != "" {
			return child(ctx, o, flag.Args())
		}
		return run(ctx, o, only)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, only string) (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "forebay-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
	}
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	fmt.Printf("%s, %s/%s, %d CPUs, %d rounds; medians (spread: distance of the extremes)\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.rounds)
	for _, p := range parts {
		if len(wanted) > 0 && !slices.Contains(wanted, p.name) {
			continue
		}
		t := &table{}
		if err := p.run(ctx, o, t); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		t.print(p.name)
	}
	return nil
}

// table is what one part found.
type table struct{ lines []string }

// figure adds a measured series.
func (t *table) figure(name, unit string, s bench.Series) {
	t.lines = append(t.lines, fmt.Sprintf("%s\t%s %s\t±%.0f %%\t", name, short(s.Median()), unit, s.Spread()*50))
}

// target adds a figure that has one: least or most, in the unit of the value.
func (t *table) target(name string, value float64, unit, want string, passed bool) {
	verdict := "passed"
	if !passed {
		verdict = "MISSED"
	}
	t.lines = append(t.lines, fmt.Sprintf("%s\t%s %s\twant %s\t%s", name, short(value), unit, want, verdict))
}

// ratio adds the ratio of two series that ran in turns, round by round.
func (t *table) ratio(name string, ours, baseline bench.Series, least float64) {
	var r bench.Series
	for i := range ours {
		r = append(r, ours[i]/baseline[i])
	}
	t.target(name, r.Median(), fmt.Sprintf("(±%.0f %%)", r.Spread()*50), fmt.Sprintf("≥ %.2f", least), r.Median() >= least)
}

func (t *table) print(name string) {
	fmt.Println(name)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, l := range t.lines {
		fmt.Fprintln(w, "  "+l)
	}
	_ = w.Flush()
	fmt.Println()
}

// short writes a number as people read it: 1,000,000 or 0.82.
func short(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.2f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
