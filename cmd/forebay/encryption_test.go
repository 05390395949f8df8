package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/internal/redistest"
)

// sealing is a data folder, with a secret that may not be found in it.
type sealing struct {
	*testing.T
	dir, keys string
}

const sealedSecret = "Ada-Lovelace-4111"

// settings are the flags for some keys.
func (s *sealing) settings(current string, ids ...string) []string {
	s.Helper()
	args := []string{"--set", "encryption.current=" + current, "--set", "queues.open.encrypt=false"}
	for _, id := range ids {
		path := filepath.Join(s.keys, id)
		if err := os.WriteFile(path, fmt.Appendf(nil, "%064s\n", id[1:]), 0o600); err != nil {
			s.Fatal(err)
		}
		args = append(args, "--set", "encryptionKeys."+id+".file="+path)
	}
	return args
}

func (s *sealing) post(url, body string) {
	s.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil || resp.StatusCode >= 300 {
		s.Fatal(resp, err)
	}
	resp.Body.Close()
}

// want asks for something, which has to say something.
func (s *sealing) want(url, says string) {
	s.Helper()
	resp, err := http.Get(url)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), says) {
		s.Errorf("%s: %s, %v", url, b, err)
	}
}

// found names the files that have the secret in them.
func (s *sealing) found() (names string) {
	s.Helper()
	for _, f := range []string{queueFile, queueFile + "-wal", badFile, badFile + "-wal"} {
		if b, err := os.ReadFile(filepath.Join(s.dir, f)); err == nil && bytes.Contains(b, []byte(sealedSecret)) {
			names += f + " "
		}
	}
	return names
}

func (s *sealing) stop(p *process) {
	s.Helper()
	p.signal(s.T)
	p.wait(s.T)
}

// forebay runs a command.
func (s *sealing) forebay(code int, says string, args ...string) {
	s.Helper()
	cmd := exec.Command("forebay", args...)
	out, _ := cmd.CombinedOutput() // its exit code is looked at
	if cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), says) {
		s.Errorf("%v: exit code %d, want %d with %q: %s", args, cmd.ProcessState.ExitCode(), code, says, out)
	}
}

// A server that seals: nothing of what was sent is in its folder, and everything is shown;
// with another key, not without one, and after a move to Redis.
func TestEncryption(t *testing.T) {
	t.Parallel()
	s := &sealing{t, t.TempDir(), t.TempDir()}
	job := func(id, queue string) string {
		return fmt.Sprintf(`{"id":%q,"queue":%q,"name":"k","delay":"1h","data":{"name":%q}}`, id, queue, sealedSecret)
	}
	p := start(t, s.dir, s.settings("k1", "k1")...)
	s.post(p.url+"/api/jobs", job("later", "mail"))
	s.post(p.url+"/ingest/batch", fmt.Sprintf(`[{"eventType":"ok","payload":{}},{"eventType":7,"payload":{"name":%q}}]`, sealedSecret))
	if names := s.found(); names != "" {
		t.Errorf("sealed, and it is in %s", names)
	}
	s.want(p.url+"/api/jobs/later", sealedSecret)
	s.want(p.url+"/api/jobs?q=payload.name:"+sealedSecret, "later")
	s.want(p.url+"/api/bad/1", sealedSecret)
	s.want(p.url+"/api/encryption", `"current":"k1"`)
	s.stop(p)
	if names := s.found(); names != "" {
		t.Errorf("stopped, and it is in %s", names)
	}
	serve := []string{"serve", "--data", s.dir, "--listen", "127.0.0.1:0", "--sqs-listen", "off"}
	s.forebay(exitStart, "sealed by the key k1", append(serve, s.settings("k2", "k2")...)...)
	s.forebay(exitStart, "sealed by the key k1", serve...)
	s.forebay(exitUsage, "not among encryptionKeys", append(serve, s.settings("k1", "k2")...)...)

	p = start(t, s.dir, s.settings("k2", "k1", "k2")...)
	s.forebay(exitDone, "k1 seals 1 data keys: it is needed until a rotation", "encryption", "status", "--data", s.dir)
	s.forebay(exitDone, "k1 is not needed", "encryption", "rotate", "--data", s.dir)
	s.want(p.url+"/api/bad/1", sealedSecret)
	s.post(p.url+"/api/jobs", job("plain", "open"))
	if names := s.found(); !strings.Contains(names, queueFile) {
		t.Errorf("what is not to be sealed is in %q only", names)
	}
	s.stop(p)

	redis := redistest.Start(t, redistest.Config{}).URL(0)
	args := append(s.settings("k2", "k2"), "--set", "redis.url="+redis)
	s.forebay(exitDone, "2 jobs (2 delayed) were moved and compared", append([]string{"move", "--data", s.dir, "--from", "sqlite", "--to", "redis"}, args...)...)
	for id, readable := range map[string]bool{"mail:later": false, "open:plain": true} {
		out, err := exec.Command("redis-cli", "-u", redis, "HGETALL", "bull:"+id).CombinedOutput()
		if err != nil || strings.Contains(string(out), sealedSecret) != readable || !strings.Contains(string(out), "data") {
			t.Errorf("%s: %v: %s", id, err, out)
		}
	}
	p = start(t, s.dir, args...)
	s.want(p.url+"/api/jobs/later", sealedSecret)
	s.stop(p)
}
