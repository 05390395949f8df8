package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	const (
		good = `{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"pass","Package":"p","Elapsed":0.2}
`
		bad = `{"Action":"output","Package":"p","Test":"TestB","Output":"what went wrong\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":0}
`
		skipped = `{"Action":"skip","Package":"p","Test":"TestC"}
`
		unbuilt = `{"ImportPath":"p [p.test]","Action":"build-output","Output":"undefined: x\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p [p.test]"}
`
	)
	for _, c := range []struct {
		name, in string
		ok       bool
		says     []string
		hides    string
	}{
		{"good", good, true, []string{"ok    p 0.2s", "x: 1 passed, 0 failed, 0 skipped"}, "noise"},
		{"a failure is shown whole", good + bad, false, []string{"what went wrong", "FAIL  p", "x: 1 passed, 1 failed"}, "noise"},
		{"a skip fails", good + skipped, false, []string{"skipped, which no test may: p TestC"}, "noise"},
		{"no test fails", "", false, []string{"x: 0 passed, 0 failed"}, "noise"},
		{"a build that fails", good + unbuilt, false, []string{"undefined: x"}, "noise"},
		{"a line that is not understood", "go: cannot find main module\n" + good, true, []string{"go: cannot find main module"}, "noise"},
	} {
		r := newReport()
		var out strings.Builder
		if err := r.read(strings.NewReader(c.in), &out); err != nil {
			t.Fatal(err)
		}
		if ok := r.close("x", &out); ok != c.ok {
			t.Errorf("%s: ok is %v", c.name, ok)
		}
		for _, want := range c.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in the output:\n%s", c.name, want, out.String())
			}
		}
		if strings.Contains(out.String(), c.hides) {
			t.Errorf("%s: %q is in the output:\n%s", c.name, c.hides, out.String())
		}
	}
}
