//go:build e2e && linux

package e2e

import (
	"encoding/hex"
	"flag"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// picture is the file for the picture of one event's trace; empty: none is drawn.
var picture = flag.String("draw-trace", "", "write the trace of one event as a picture (docs/trace.svg)")

// spans takes what is sent over OTLP.
type spans struct {
	mu  sync.Mutex
	all []*trace.Span
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in collector.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(body, &in)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range in.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			s.all = append(s.all, scope.Spans...)
		}
	}
}

// find gives the first span of this name that is in a trace, or links to it.
func (s *spans) find(name, in string) *trace.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.all {
		if span.Name == name && (hex.EncodeToString(span.TraceId) == in || linked(span, in)) {
			return span
		}
	}
	return nil
}

func linked(span *trace.Span, in string) bool {
	return slices.ContainsFunc(span.Links, func(l *trace.Span_Link) bool { return hex.EncodeToString(l.TraceId) == in })
}

const pictureHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 %d" font-family="ui-monospace, monospace" font-size="13" role="img" aria-label="Spans of one event over time">
<style>
  text { fill: #1f2933 } .quiet { fill: #52606d } .bar { fill: #2f6fde } .linked { fill: #b4690e } .line { stroke: #b4690e; fill: none; stroke-dasharray: 4 3 } .axis { stroke: #9aa5b1 }
  @media (prefers-color-scheme: dark) { text { fill: #e4e7eb } .quiet { fill: #9aa5b1 } .bar { fill: #6ea1f7 } .linked { fill: #f0b429 } .line { stroke: #f0b429 } }
</style>
`

// draw makes a picture of the spans of one event, with what links to it in another colour.
func draw(t *testing.T, path, in string, all ...*trace.Span) {
	t.Helper()
	first, last := all[0].StartTimeUnixNano, all[0].EndTimeUnixNano
	for _, s := range all {
		first, last = min(first, s.StartTimeUnixNano), max(last, s.EndTimeUnixNano)
	}
	const left, width, row = 250, 560, 44
	x := func(at uint64) float64 { return left + width*float64(at-first)/float64(last-first) }
	var b strings.Builder
	fmt.Fprintf(&b, pictureHead, row*len(all)+90)
	fmt.Fprintf(&b, "<text class=\"quiet\" x=\"10\" y=\"20\">trace %s</text>\n", in)
	for i, s := range all {
		y, class, from := 40+row*i, "bar", x(s.StartTimeUnixNano)
		wide := max(2, x(s.EndTimeUnixNano)-from)
		if linked(s, in) {
			class = "linked"
			end := x(all[i-1].EndTimeUnixNano) // of what the link points at
			fmt.Fprintf(&b, "<path class=\"line\" d=\"M%.1f %d V%d H%.1f\"/>\n", end, y-row+22, y+11, from)
			fmt.Fprintf(&b, "<text class=\"quiet\" x=\"10\" y=\"%d\">a trace of its own, linked</text>\n", y+32)
		}
		fmt.Fprintf(&b, "<text x=\"10\" y=\"%d\">%s</text>\n", y+16, html.EscapeString(s.Name))
		fmt.Fprintf(&b, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"22\" rx=\"3\"/>\n", class, from, y, wide)
		ms := float64(s.EndTimeUnixNano-s.StartTimeUnixNano) / 1e6
		at, anchor := from+wide+6, "start"
		if at > left+width-60 {
			at, anchor = from-6, "end"
		}
		fmt.Fprintf(&b, "<text class=\"quiet\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%.1f ms</text>\n", at, y+16, anchor, ms)
	}
	foot := 50 + row*len(all)
	fmt.Fprintf(&b, "<path class=\"axis\" d=\"M%d %d H%d\"/>\n<text class=\"quiet\" x=\"%d\" y=\"%d\">0</text>\n", left, foot, left+width, left, foot+18)
	fmt.Fprintf(&b, "<text class=\"quiet\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%.1f ms</text>\n</svg>\n", left+width, foot+18, float64(last-first)/1e6)
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
