package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (run with -update to accept):\n%s", path, got)
	}
}

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// Every wrong line of the file, the environment and the flags is named at once,
// with its place and what is allowed.
func TestAllProblemsAtOnce(t *testing.T) {
	_, err := config.Load(config.Sources{
		File:  filepath.Join("testdata", "wrong.yaml"),
		Env:   env("PORT", "http", "FOREBAY_LOG_LEVEL", "chatty"),
		Flags: []config.Flag{{Name: "--set", Key: "sink.batchmax", Value: "7"}, {Name: "--data", Key: "data.dir", Value: strings.Repeat("x", 2000)}},
	})
	if err == nil {
		t.Fatal("no problem found")
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("a password is shown")
	}
	golden(t, "wrong.golden", []byte(filepath.ToSlash(err.Error())+"\n"))
}

func TestSyntaxErrorHasItsLine(t *testing.T) {
	for name, want := range map[string]string{
		"log:\n  level: info\n  level: warn\n": ":3:3",
		"server:\n\t- x":                       ":2:1",
		"a: b: c\n":                            ":1:",
		"log: *x\n":                            ":1:",
		"server: {listen\n":                    ":1:",
		"log:\n---\nlog:\n":                    ":3:",
	} {
		path := filepath.Join(t.TempDir(), "forebay.yaml")
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(config.Sources{File: path})
		if err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("%q: got %v, want a problem at %s", name, err, want)
		}
	}
}

func TestDefaultsNeedNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	s, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Server.Listen != "127.0.0.1:8080" || s.Sink.BatchAge != time.Second || s.Queue("events").Attempts != 10 {
		t.Errorf("unexpected defaults: %+v", s)
	}
	if _, err := config.Load(config.Sources{File: "none.yaml"}); err == nil {
		t.Error("a file that was named and is not there is no problem")
	}
}

// Flags weigh more than the environment, that more than the file, that more than
// the default; a queue inherits from the default policy.
func TestWeight(t *testing.T) {
	s, err := config.Load(config.Sources{
		File: filepath.Join("testdata", "good.yaml"),
		Env: env("PORT", "7070", "DATABASE_URL", "postgres://app:hunter2@db/prod?password=x", "FOREBAY_SINK_BATCHAGE", "2s",
			"FOREBAY_SINK_BATCHBYTES", ""),
		Flags: []config.Flag{{Name: "--set", Key: "sink.batchAge", Value: "3s"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Server.Listen != "7070" || s.Sink.BatchAge != 3*time.Second || s.Sink.Retention != 90*24*time.Hour {
		t.Errorf("unexpected weight: %+v", s)
	}
	if q := s.Queue("events"); q.Attempts != 5 || q.BackoffMax != time.Minute {
		t.Errorf("queue events: %+v", q)
	}
	if h := s.Handlers["transcode"]; h.Queue != "media" || len(h.Command) != 2 || s.Handlers["crm-sync"].Queue != "jobs" {
		t.Errorf("handlers: %+v", s.Handlers)
	}
	if r := s.Reports["signups"]; r.Query == "" || len(r.Params) != 1 {
		t.Errorf("reports: %+v", s.Reports)
	}
	if q := s.Queue("other"); q.Attempts != 5 || q.BackoffMax != 5*time.Minute {
		t.Errorf("queue other: %+v", q)
	}
	b, err := json.MarshalIndent(s.Effective(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("hunter2")) || bytes.Contains(b, []byte("aHVudGVyMg")) {
		t.Error("a password is shown")
	}
	golden(t, "effective.golden", append(b, '\n'))
}

func TestAddress(t *testing.T) {
	for _, c := range []struct {
		listen         string
		insecure, keys bool
		want           string
	}{
		{"8080", false, false, "127.0.0.1:8080"},
		{"8080", false, true, ":8080"},
		{"8080", true, false, ":8080"},
		{"0.0.0.0:80", false, false, "0.0.0.0:80"},
	} {
		s := &config.Settings{Server: config.Server{Listen: c.listen, Insecure: c.insecure}}
		if got := s.Address(c.keys); got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

// The example file is complete and true: with its settings uncommented it changes
// nothing.
func TestExample(t *testing.T) {
	var b bytes.Buffer
	if err := config.Example(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "example.golden", b.Bytes())

	var lines []string
	for _, line := range strings.Split(b.String(), "\n") {
		if body, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "# "); ok {
			name, _, pair := strings.Cut(body, ": ")
			if !pair || strings.ContainsAny(name, " .") || name == "Allowed" {
				continue
			}
			line = line[:len(line)-len(body)-2] + body
		}
		lines = append(lines, line)
	}
	path := filepath.Join(t.TempDir(), "forebay.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := config.Load(config.Sources{File: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	none, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	a, n := all.Effective(), none.Effective()
	for i := range n {
		if a[i].Value != n[i].Value {
			t.Errorf("%s: the example says %q, the default is %q", n[i].Key, a[i].Value, n[i].Value)
		}
		if a[i].Source == "default" {
			t.Errorf("%s is not in the example", n[i].Key)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, name := range []string{"wrong.yaml", "good.yaml", "example.golden"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), "forebay.yaml")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := config.Load(config.Sources{File: path})
		if (s == nil) == (err == nil) {
			t.Errorf("settings %v with error %v", s, err)
		}
	})
}

// Who raises the attempts need not think of hand-outs: they follow, unless somebody
// names a number, which then must allow the attempts.
func TestDeliveriesFollowTheAttempts(t *testing.T) {
	for text, fine := range map[string]bool{
		"queues:\n  default: {attempts: 50}\n  mail: {attempts: 300}\n": true,
		"queues:\n  default: {attempts: 50, deliveries: 60}\n":          true,
		"queues:\n  default: {attempts: 50, deliveries: 20}\n":          false,
	} {
		path := filepath.Join(t.TempDir(), "forebay.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := config.Load(config.Sources{File: path})
		if (err == nil) != fine {
			t.Errorf("%q: %v", text, err)
		}
		if s == nil {
			continue
		}
		if q := s.Queues["mail"]; q.Attempts == 300 && q.Deliveries != 0 {
			t.Errorf("%q: %d deliveries, want them to follow", text, q.Deliveries)
		}
	}
}

// A folder of credentials is read between the file and the environment; it is told which
// of its files is wrong, and what is for others is left alone.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("sink.url", "postgres://app:hunter2@db/shop\n")
	put("webhooks.secret", "from the folder")
	put("tls-key.pem", "of somebody else")
	s, err := config.Load(config.Sources{Creds: dir, Env: env("FOREBAY_WEBHOOKS_SECRET", "from the environment")})
	if err != nil || s.Sink.URL != "postgres://app:hunter2@db/shop" || s.Webhooks.Secret != "from the environment" {
		t.Errorf("%+v, %v", s, err)
	}
	put("sink.url", "mysql://app:hunter2@db/shop")
	put("sink.ulr", "x")
	_, err = config.Load(config.Sources{Creds: dir})
	if err == nil || strings.Contains(err.Error(), "hunter2") ||
		!strings.Contains(err.Error(), filepath.Join(dir, "sink.url")) || !strings.Contains(err.Error(), filepath.Join(dir, "sink.ulr")) {
		t.Errorf("%v", err)
	}
	if _, err = config.Load(config.Sources{Creds: filepath.Join(dir, "none")}); err == nil {
		t.Error("a folder that is not there was taken")
	}
}
