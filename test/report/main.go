// Command report reads the output of `go test -json`, prints a line per package
// and the whole output of what failed, and ends with a closing line of counts.
//
// It promises a non-zero exit when a test or a build failed, when a test was
// skipped, or when no test ran. It refuses to hide: output that it does not
// understand is printed as it is.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is one line of `go test -json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

type report struct {
	passed, failed int
	skipped        []string
	unwell         map[string]bool             // packages with a test that failed
	output         map[string]*strings.Builder // of running tests and packages
}

func newReport() *report {
	return &report{unwell: map[string]bool{}, output: map[string]*strings.Builder{}}
}

func main() {
	name := "test"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	r := newReport()
	if err := r.read(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	if !r.close(name, os.Stdout) {
		os.Exit(1)
	}
}

// close prints the closing line, and tells whether all is well.
func (r *report) close(name string, out io.Writer) bool {
	for _, test := range r.skipped {
		fmt.Fprintln(out, "skipped, which no test may:", test)
	}
	fmt.Fprintf(out, "%s: %d passed, %d failed, %d skipped\n", name, r.passed, r.failed, len(r.skipped))
	return r.failed == 0 && len(r.skipped) == 0 && r.passed > 0
}

func (r *report) read(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(out, line)
			} else {
				r.add(e, out)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event, out io.Writer) {
	key := e.Package + e.ImportPath + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if r.output[key] == nil {
			r.output[key] = &strings.Builder{}
		}
		r.output[key].WriteString(e.Output)
	case "pass", "fail", "skip", "build-fail":
		r.ended(e, key, out)
		delete(r.output, key)
	}
}

// ended counts a test, and prints what a person needs: of a package one line,
// of a failure everything that it wrote.
func (r *report) ended(e event, key string, out io.Writer) {
	failed := e.Action == "fail" || e.Action == "build-fail"
	if failed {
		if e.Test != "" || !r.unwell[e.Package] { // a package fails with its tests, or by itself
			r.failed++
			r.unwell[e.Package] = true
		}
		if text := r.output[key]; text != nil {
			fmt.Fprint(out, text)
		}
	}
	switch {
	case e.Test == "" && e.Action == "pass":
		fmt.Fprintf(out, "ok    %s %.1fs\n", e.Package, e.Elapsed)
	case e.Test == "" && failed:
		fmt.Fprintf(out, "FAIL  %s%s %.1fs\n", e.Package, e.ImportPath, e.Elapsed)
	case e.Test != "" && e.Action == "pass":
		r.passed++
	case e.Test != "" && e.Action == "skip":
		r.skipped = append(r.skipped, e.Package+" "+e.Test)
	}
}
