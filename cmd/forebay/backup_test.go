package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A copy that is made while events come in has all that was acknowledged before, each
// once, and its jobs. The original may burn.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir, copied, back := filepath.Join(base, "data"), filepath.Join(base, "copy.tar.zst"), filepath.Join(base, "back")
	p := start(t, dir)
	addLater(t, p.url)
	c := newCrowd()
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for n := range 4 {
		clients.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				c.post(ctx, p.url, fmt.Sprintf("%d-%d", n, i))
			}
		})
	}
	c.wait(300)
	c.mu.Lock()
	before := slices.Clone(c.acked)
	c.mu.Unlock()
	if out, err := exec.Command("forebay", "backup", copied, "--data", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	stop()
	clients.Wait()
	if out, err := exec.Command("forebay", "restore", copied, "--data", back).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	again := start(t, back)
	err := repeatedly(t.Context(), func() error {
		written := ids(t, filepath.Join(back, eventsFile))
		for _, id := range before {
			if written[id] != 1 {
				return fmt.Errorf("%s is there %d times", id, written[id])
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if j, err := jobAt(again.url, "later"); err != nil || !strings.Contains(j, `"delayed"`) || !strings.Contains(j, `"kept"`) {
		t.Errorf("%s, %v", j, err)
	}
	again.signal(t)
	again.wait(t)
}

func addLater(t *testing.T, url string) {
	t.Helper()
	body := `{"id":"later","queue":"mail","name":"letter","data":{"text":"kept"},"delay":"1h"}`
	resp, err := http.Post(url+"/api/jobs", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); resp.StatusCode/100 != 2 {
		t.Fatalf("%s: %s, %v", resp.Status, b, err)
	}
}

func jobAt(url, id string) (string, error) {
	resp, err := http.Get(url + "/api/jobs/" + id)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// A copy that any version made is restored and goes on, for ever. Copies are added, never
// changed. Each holds: an event that is written, three that wait in a paused queue, a bad row,
// and a job without a handler.
func TestGoldenCopies(t *testing.T) {
	t.Parallel()
	copies, err := filepath.Glob("testdata/backups/*.tar.zst")
	if err != nil || len(copies) == 0 {
		t.Fatal(copies, err)
	}
	for _, copied := range copies {
		back := filepath.Join(t.TempDir(), "back")
		if out, err := exec.Command("forebay", "restore", copied, "--data", back).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		p := start(t, back)
		if out, err := exec.Command("forebay", "queues", "resume", "events", "--data", back).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		err := repeatedly(t.Context(), func() error {
			written := ids(t, filepath.Join(back, eventsFile))
			for _, id := range []string{"written", "queued-1", "queued-2", "queued-3"} {
				if written[id] != 1 {
					return fmt.Errorf("%s is there %d times", id, written[id])
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", copied, err)
		}
		if j, err := jobAt(p.url, "dead-one"); err != nil || !strings.Contains(j, `"waiting"`) {
			t.Errorf("%s, %v", j, err)
		}
		out, err := exec.Command("forebay", "bad", "ls", "--data", back).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "/payload") {
			t.Errorf("%v: %s", err, out)
		}
		p.signal(t)
		p.wait(t)
	}
}
