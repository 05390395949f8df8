package demo

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Screen shows frames on a terminal: each one is drawn over the one before.
type Screen struct {
	Out   io.Writer
	Width int // of the terminal; 0: 100
	Paint func(colour, text string) string

	height int // lines of the frame that stands there
}

// Colours, as ANSI knows them.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	amber = "33"
)

// Show draws a frame.
func (s *Screen) Show(f Frame) {
	lines := s.lines(f)
	var b strings.Builder
	if s.height > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.height)
	}
	for _, line := range lines {
		b.WriteString("\x1b[2K" + strings.TrimRight(line, " ") + "\n")
	}
	if s.height > len(lines) {
		b.WriteString("\x1b[J")
	}
	s.height = len(lines)
	_, _ = io.WriteString(s.Out, b.String())
}

func (s *Screen) lines(f Frame) []string {
	// A line that wraps would count twice when the next frame goes up over it.
	room := max(cmp.Or(s.Width, 100)-28, 10)
	row := func(colour, name string, n int64, text string) string {
		return fmt.Sprintf("  %-12s %s  %s", name, s.Paint(colour, fmt.Sprintf("%9s", humanize.Comma(n))), s.Paint(dim, clip(text, room)))
	}
	phase := f.Phase
	if f.Last {
		phase = "done"
	}
	speed := ""
	if f.Rate > 0 {
		speed = humanize.Comma(int64(f.Rate)) + " a second"
	}
	lines := []string{
		s.Paint(bold, phase) + s.Paint(dim, fmt.Sprintf("  %.1f s", f.Elapsed.Seconds())),
		row(green, "accepted", int64(f.Seen.Accepted), speed),
		row(amber, "duplicate", int64(f.Seen.Duplicate), "known already, stored once"),
		row(red, "rejected", int64(f.Seen.Rejected), "each with its reason:"),
	}
	for _, r := range f.Seen.Reasons {
		lines = append(lines, fmt.Sprintf("  %12s %9d  %s", "", r.Count, s.Paint(dim, clip(r.Code+": "+r.Text, room))))
	}
	lines = append(lines,
		row(green, "written", f.Counts.Written, "rows in the database"),
		row(red, "dead letter", f.Counts.Dead, clip(f.Counts.Cause, 120)),
		row(amber, "waiting", f.Counts.Waiting, bar(f.Counts.Waiting)),
		fmt.Sprintf("  %-12s  p50 %s  p99 %s", "answered in", millis(f.P50), millis(f.P99)),
	)
	return lines
}

// bar is one block for each doubling.
func bar(n int64) string {
	blocks := 0
	for ; n > 0; n /= 2 {
		blocks++
	}
	return strings.Repeat("▇", blocks)
}

// Lines shows frames where there is no terminal: a line a second.
type Lines struct {
	Out  io.Writer
	next time.Duration
}

// Show prints a line when a second has passed.
func (l *Lines) Show(f Frame) {
	if f.Elapsed < l.next && !f.Last {
		return
	}
	l.next = f.Elapsed.Truncate(time.Second) + time.Second
	if f.Last {
		f.Phase = "done"
	}
	fmt.Fprintf(l.Out, "%5.1f s  accepted %d  duplicate %d  rejected %d  written %d  dead %d  waiting %d  p50 %s  p99 %s  (%s)\n",
		f.Elapsed.Seconds(), f.Seen.Accepted, f.Seen.Duplicate, f.Seen.Rejected, f.Counts.Written, f.Counts.Dead,
		f.Counts.Waiting, millis(f.P50), millis(f.P99), f.Phase)
	if !f.Last {
		return
	}
	for _, r := range f.Seen.Reasons {
		fmt.Fprintf(l.Out, "         rejected %d: %s: %s\n", r.Count, r.Code, clip(r.Text, 120))
	}
	if f.Counts.Cause != "" {
		fmt.Fprintf(l.Out, "         dead %d: %s\n", f.Counts.Dead, clip(f.Counts.Cause, 120))
	}
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// clip keeps a text on one line of a terminal.
func clip(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
