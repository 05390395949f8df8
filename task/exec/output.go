package exec

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

// Bounds of what is kept of a program's output.
const (
	maxLine     = forebay.MaxResultBytes + 64 // a result with what is around it
	maxLogLines = 10_000
	maxLogTotal = 1 << 20
)

// output takes what a program writes, line by line.
type output struct {
	job *worker.Job
	max int64

	mu       sync.Mutex // the two streams are read by goroutines of their own
	streams  []*stream
	written  int64
	over     bool
	overflow chan struct{} // closed at most once, when over
	percent  float64       // of the last progress
	stage    string
	result   []byte
	lost     bool // the last result was too large
	why      string
	said     bool // why is from an error line
	wait     time.Duration
	lines    int // of the log
	logged   int // bytes
	unlogged int // lines beyond the bounds
}

func newOutput(j *worker.Job, most int64) *output {
	return &output{job: j, max: most, overflow: make(chan struct{})}
}

// stream cuts one of the two streams into lines of at most max bytes; what a line
// has beyond them is dropped.
type stream struct {
	out  *output
	max  int
	line func(text []byte, cut bool)
	part []byte
	cut  bool
}

func (o *output) stream(most int, line func([]byte, bool)) *stream {
	s := &stream{out: o, max: most, line: line}
	o.streams = append(o.streams, s)
	return s
}

// Write never fails: a program that writes too much is ended, not blocked.
func (s *stream) Write(p []byte) (int, error) {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	s.out.written += int64(len(p))
	if s.out.written > s.out.max && !s.out.over {
		s.out.over = true
		close(s.out.overflow)
	}
	if s.out.over {
		return len(p), nil
	}
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		s.add(line)
		if whole {
			s.end()
		}
		rest = after
	}
	return len(p), nil
}

func (s *stream) add(line []byte) {
	if room := s.max - len(s.part); len(line) > room {
		line, s.cut = line[:room], true
	}
	s.part = append(s.part, line...)
}

func (s *stream) end() {
	s.line(bytes.TrimSpace(s.part), s.cut)
	s.part, s.cut = s.part[:0], false
	if cap(s.part) > 64<<10 {
		s.part = nil
	}
}

// flush takes the last lines, which may lack their end, when the program is gone.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.streams {
		if len(s.part) > 0 {
			s.end()
		}
	}
	if o.unlogged > 0 {
		o.job.Logf("%d more lines were not kept", o.unlogged)
	}
}

func (o *output) overflowed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}

// message is a line that is meant for us.
type message struct {
	Progress   *float64       `json:"progress"`
	Stage      string         `json:"stage"`
	Message    string         `json:"message"`
	Data       jsontext.Value `json:"data"`
	Result     jsontext.Value `json:"result"`
	Error      string         `json:"error"`
	RetryAfter float64        `json:"retryAfter"`
}

// parse tells whether a line is for us: many programs write logs as JSON.
func parse(line []byte) (m message, ok bool) {
	if len(line) < 2 || line[0] != '{' {
		return m, false
	}
	if err := json.Unmarshal(line, &m, json.RejectUnknownMembers(true)); err != nil {
		return m, false
	}
	kinds := 0
	for _, is := range []bool{m.Progress != nil || m.Stage != "", m.Result != nil, m.Error != ""} {
		if is {
			kinds++
		}
	}
	return m, kinds == 1
}

// told takes a line of standard output. o.mu is held.
func (o *output) told(line []byte, cut bool) {
	m, ok := parse(line)
	switch {
	case cut && bytes.HasPrefix(line, []byte(`{"result"`)):
		o.result, o.lost = nil, true
	case cut || !ok:
		o.log(line, cut)
	case m.Result != nil:
		o.result = bytes.Clone(m.Result)
		o.lost = len(o.result) > forebay.MaxResultBytes
	case m.Error != "":
		o.why, o.said = clip(m.Error, forebay.MaxTextBytes), true
		o.wait = time.Duration(min(max(m.RetryAfter, 0), maxRetryAfter.Seconds()) * float64(time.Second))
	default:
		o.progress(m)
	}
}

// progress that names no stage or no percent keeps the last one.
func (o *output) progress(m message) {
	if m.Progress != nil {
		o.percent = min(max(*m.Progress, 0), 100)
	}
	if m.Stage != "" {
		o.stage = clip(m.Stage, forebay.MaxStageBytes)
	}
	p := forebay.Progress{Stage: o.stage, Percent: o.percent, Message: clip(m.Message, forebay.MaxTextBytes)}
	if len(m.Data) > forebay.MaxProgressBytes {
		o.log(fmt.Appendf(nil, "progress data of %d bytes was not kept; up to %d are", len(m.Data), forebay.MaxProgressBytes), false)
	} else {
		p.Data = bytes.Clone(m.Data)
	}
	o.job.Tell(p)
}

// stderr takes a line of standard error; the last one tells why a program failed
// that did not say so. o.mu is held.
func (o *output) stderr(line []byte, cut bool) {
	if len(line) > 0 && !o.said {
		o.why = clip(string(line), forebay.MaxTextBytes)
	}
	o.log(line, cut)
}

func (o *output) log(line []byte, cut bool) {
	const mark = " … (cut)"
	text := clip(string(line), forebay.MaxLogBytes)
	switch {
	case text == "":
		return
	case o.lines >= maxLogLines || o.logged+len(text) > maxLogTotal:
		o.unlogged++
		return
	case cut || len(text) < len(line):
		text = clip(text, forebay.MaxLogBytes-len(mark)) + mark
	}
	o.lines++
	o.logged += len(text)
	o.job.Logf("%s", text)
}

// clip bounds a text without breaking a character.
func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}
