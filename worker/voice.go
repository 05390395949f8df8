package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/forebayhq/forebay"
)

// Bounds of what a job tells and is not stored yet.
const (
	mostStages = 8   // progress of one stage: the latest; of more stages than this: the last ones' latest
	mostLines  = 100 // of the log; what comes on top is counted
)

// voice of one delivery.
type voice struct {
	t  *talker
	it *item

	progress []forebay.Progress // by stage, oldest first
	lines    []forebay.LogLine
	dropped  int // lines
	queued   bool
	flying   bool // in the call under way
	closed   bool // its verdict is on its way; what comes now is too late
}

// tell is a Teller.
func (v *voice) tell(p *forebay.Progress, line *forebay.LogLine) {
	t := v.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if v.closed || t.off {
		return
	}
	if p != nil {
		v.addProgress(fitted(*p))
	}
	if line != nil {
		v.addLine(*line)
	}
	t.queue(v)
}

func (v *voice) addProgress(p forebay.Progress) {
	last := len(v.progress) - 1
	if last >= 0 && (v.progress[last].Stage == p.Stage || last+1 >= mostStages) {
		v.progress[last] = p
		return
	}
	v.progress = append(v.progress, p)
}

func (v *voice) addLine(line forebay.LogLine) {
	if len(v.lines) >= mostLines {
		v.dropped++
		return
	}
	line.Text = cut(line.Text, forebay.MaxLogBytes)
	v.lines = append(v.lines, line)
}

// told is what one voice has to tell, taken out of it.
type told struct {
	v        *voice
	progress []forebay.Progress
	lines    []forebay.LogLine
	dropped  int
}

// takeOut needs t.mu.
func (v *voice) takeOut() told {
	out := told{v: v, progress: v.progress, lines: v.lines, dropped: v.dropped}
	v.progress, v.lines, v.dropped, v.queued = nil, nil, 0, false
	return out
}

func (o *told) size() (n int) {
	for _, p := range o.progress {
		n += len(p.Data) + len(p.Message)
	}
	for _, l := range o.lines {
		n += len(l.Text)
	}
	return n
}

func (o *told) updates() (all []forebay.ProgressUpdate) {
	receipt := o.v.it.d.Receipt
	for i := range o.progress {
		all = append(all, forebay.ProgressUpdate{Receipt: receipt, Progress: &o.progress[i]})
	}
	lines := o.lines
	if o.dropped > 0 {
		lines = append(lines, forebay.LogLine{At: lines[len(lines)-1].At, Text: fmt.Sprintf("%d lines dropped: more was written than can be stored", o.dropped)})
	}
	switch {
	case len(lines) > 0 && len(all) > 0:
		all[len(all)-1].Log = lines
	case len(lines) > 0:
		all = append(all, forebay.ProgressUpdate{Receipt: receipt, Log: lines})
	}
	return all
}

// fitted cuts a progress to its bounds: a handler that tells too much goes on.
func fitted(p forebay.Progress) forebay.Progress {
	p.Stage = cut(oneLine(p.Stage), forebay.MaxStageBytes)
	p.Message = cut(oneLine(p.Message), forebay.MaxTextBytes)
	if !(p.Percent >= 0) {
		p.Percent = 0
	}
	p.Percent = min(p.Percent, 100)
	if len(p.Data) > forebay.MaxProgressBytes || len(p.Data) > 0 && !json.Valid(p.Data) {
		p.Data = nil
	}
	return p
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// cut drops what is too much, and a character that it cut in two.
func cut(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }
