package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// The exit codes, as the help says them.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitStart  = 3
)

// coded gives an error its exit code.
type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

func usage(err error) error       { return coded{err, exitUsage} }
func cannotStart(err error) error { return coded{err, exitStart} }

// report prints an error once and gives the exit code.
func (p *program) report(err error) int {
	if err == nil {
		return exitDone
	}
	code := exitFailed
	var c coded
	var problems config.Problems
	switch {
	case errors.As(err, &c):
		code = c.code
	case errors.As(err, &problems):
		code = exitUsage
	}
	if p.json {
		p.reportJSON(err, problems)
		return code
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		fmt.Fprintln(p.err, "forebay: "+line)
	}
	if hint := hintOf(err); hint != "" {
		fmt.Fprintln(p.err, "  "+hint)
	}
	return code
}

func (p *program) reportJSON(err error, problems config.Problems) {
	type line struct {
		Error string       `json:"error"`
		Code  forebay.Code `json:"code"`
		Hint  string       `json:"hint,omitempty"`
	}
	enc := json.NewEncoder(p.err)
	if len(problems) == 0 {
		_ = enc.Encode(line{err.Error(), cmp.Or(codeOf(err), forebay.CodeInternal), hintOf(err)})
		return
	}
	for _, one := range problems {
		_ = enc.Encode(line{Error: one.Error(), Code: forebay.CodeInvalid})
	}
}

func codeOf(err error) forebay.Code {
	var c coded
	if errors.As(err, &c) && c.code == exitUsage {
		return forebay.CodeInvalid
	}
	return forebay.CodeOf(err)
}

func hintOf(err error) string {
	var e *forebay.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// print writes a value as JSON when scripts asked for it, else calls text.
func (p *program) print(v any, text func(w io.Writer)) error {
	if p.json {
		enc := json.NewEncoder(p.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// The colours that the program uses; plain turns them off.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	amber = "33"
)

// paint colours text on a terminal, unless the user asked for none.
func (p *program) paint(colour, s string) string {
	if none, _ := p.lookup("NO_COLOR"); !p.terminal || p.json || none != "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}
