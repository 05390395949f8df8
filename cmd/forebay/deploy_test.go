package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// What deploy/ says to the program, the program understands: settings, flags, variables.
func TestDeployFilesAreUnderstood(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../deploy/kubernetes/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var settings struct{ Data map[string]string }
	if err := yaml.Unmarshal(b, &settings); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "forebay.yaml")
	if err := os.WriteFile(file, []byte(settings.Data["forebay.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, roles := range []string{"ingest,api,console", "worker"} {
		cmd := exec.Command("forebay", "config", "--config", file, "--data", "/data", "--roles", roles)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "10s") {
			t.Errorf("%v: %s", err, out)
		}
	}
	for _, name := range []string{"../../deploy/container/Containerfile", "../../deploy/systemd/forebay.service", "../../deploy/systemd/forebay@.service"} {
		cmd := exec.Command("forebay", "config")
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), variables(t, name)...)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "environment FOREBAY_DATA") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// variables finds NAME=VALUE of Forebay in a file.
func variables(t *testing.T, name string) (all []string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(b)) {
		if word = strings.TrimPrefix(word, "Environment="); strings.HasPrefix(word, "FOREBAY_") {
			all = append(all, word)
		}
	}
	return all
}
