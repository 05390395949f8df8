package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/cmd/forebay/internal/send"
)

// Ctrl-C in the middle of a file, and the same command again: all of it is there
// once, and the second run did not begin at the start.
func TestSendGoesOn(t *testing.T) {
	t.Parallel()
	const lines = 20_000
	var file bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&file, `{"eventType":"load","userId":"u%d","payload":{"n":%d}}`+"\n", i%10, i)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "events.ndjson")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, t.TempDir())
	sending := func(batch string) *exec.Cmd {
		return exec.Command("forebay", "send", path, "--data", p.dir, "--batch", batch, "--json")
	}

	first := sending("10")
	var said bytes.Buffer
	first.Stderr = &said
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, ".events.ndjson.forebay-send")
	err := repeatedly(t.Context(), func() error { _, err := os.Stat(state); return err })
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := first.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(said.String(), "interrupted") {
		t.Fatalf("%v: %s", err, &said)
	}

	out, err := sending("500").Output()
	if err != nil {
		t.Fatal(err)
	}
	var sum send.Summary
	if err := json.Unmarshal(out, &sum); err != nil {
		t.Fatal(err)
	}
	// The batch whose answer Ctrl-C cut off may count as a duplicate.
	if sum.Resumed == 0 || sum.Accepted+sum.Duplicate != lines || sum.Duplicate > 10 || sum.Rejected != 0 {
		t.Errorf("%+v", sum)
	}
	err = repeatedly(t.Context(), func() error {
		rows, err := countRows(filepath.Join(p.dir, eventsFile))
		if err == nil && rows != lines {
			err = fmt.Errorf("%d rows, want %d", rows, lines)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	p.signal(t)
	p.wait(t)
}
