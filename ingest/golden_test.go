package ingest_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the golden files should say")

const cut = "\n======\n"

// Each file in testdata/golden is a request, and below the line what comes of it:
// the answer, what is queued, what is a bad row.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			request, want, _ := strings.Cut(string(b), cut)
			request = strings.TrimSuffix(request, "\n")
			got := newRig(t, nil).golden(request)
			if *update {
				if err := os.WriteFile(file, []byte(request+"\n"+cut+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// madeIDs are ids that the edge made.
var madeIDs = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

func (r *rig) golden(request string) string {
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(head, "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	status, header, answer := r.do(method, path, body, lines[1:]...)
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d\n", status)
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&out, "%s: %s\n", name, header.Get(name))
	}
	fmt.Fprintf(&out, "\n%s\n", strings.ReplaceAll(answer, `},{"index"`, "},\n  {\"index\""))
	for i, m := range r.queue.msgs {
		fmt.Fprintf(&out, "\nqueued %s kind=%q group=%q\n  %s\n", m.ID, m.Kind, m.Group, m.Payload)
		if e := r.queue.events[i]; e.ID != m.ID {
			r.t.Errorf("message %s has event %s", m.ID, e.ID)
		}
	}
	for _, row := range r.badRows() {
		fmt.Fprintf(&out, "\nbad %d %s id=%q code=%s at %q\n  %s\n", row.Index, row.Dialect, row.EventID, row.Code, row.Pointer, row.Bytes)
	}
	return madeIDs.ReplaceAllString(out.String(), "<made>")
}
