package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const role = "ansible/roles/forebay"

func readYAML(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// What a user can set is what the specification of the role says: with a default or required,
// and nothing is used that is neither set, found nor made on the way.
func TestRoleSaysWhatCanBeSet(t *testing.T) {
	var specs struct {
		Specs struct {
			Main struct {
				Options map[string]struct {
					Type, Description string
					Required          bool
				}
			}
		} `yaml:"argument_specs"`
	}
	readYAML(t, filepath.Join(role, "meta/argument_specs.yml"), &specs)
	defaults := map[string]any{}
	readYAML(t, filepath.Join(role, "defaults/main.yml"), &defaults)
	options := specs.Specs.Main.Options
	for name, o := range options {
		if _, ok := defaults[name]; ok == o.Required || o.Description == "" || o.Type == "" {
			t.Errorf("%s has a default: %t, is required: %t, is a %q: %q", name, ok, o.Required, o.Type, o.Description)
		}
	}
	for name := range defaults {
		if _, ok := options[name]; !ok {
			t.Errorf("%s has a default and is not in the specification", name)
		}
	}
	made := regexp.MustCompile(`(?m)(?:register: |^ +)(forebay_\w+)(?:$|:)`)
	used := regexp.MustCompile(`\bforebay_\w+`)
	known, seen := map[string]bool{}, map[string]bool{}
	for _, path := range roleFiles(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made.FindAllStringSubmatch(string(b), -1) {
			known[m[1]] = true
		}
		for _, name := range used.FindAllString(string(b), -1) {
			seen[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if _, ok := options[name]; !ok && !known[name] {
			t.Errorf("%s is used, and neither an option nor made by the role", name)
		}
	}
	for name := range options {
		if !seen[name] {
			t.Errorf("%s can be set, and nothing uses it", name)
		}
	}
}

func roleFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"tasks/*.yml", "handlers/*.yml", "templates/*.j2"} {
		found, err := filepath.Glob(filepath.Join(role, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		all = append(all, found...)
	}
	return all
}

// A step that touches a secret tells nothing of it, and no step runs a program where a
// module would know whether something changes.
func TestRoleKeepsSecrets(t *testing.T) {
	for _, path := range roleFiles(t) {
		if !strings.HasSuffix(path, ".yml") {
			continue
		}
		var tasks []map[string]any
		readYAML(t, path, &tasks)
		for _, task := range flat(tasks) {
			text, err := yaml.Marshal(task)
			if err != nil {
				t.Fatal(err)
			}
			holds := strings.Contains(string(text), "/etc/forebay/credentials/{{")
			if quiet, _ := task["no_log"].(bool); holds && !quiet {
				t.Errorf("%s: %s shows secrets: it needs no_log", path, task["name"])
			}
			for _, module := range []string{"ansible.builtin.command", "ansible.builtin.shell"} {
				if _, runs := task[module]; runs && task["changed_when"] == nil {
					t.Errorf("%s: %s does not say when it changes something", path, task["name"])
				}
			}
		}
	}
}

// flat takes tasks out of their blocks.
func flat(tasks []map[string]any) (all []map[string]any) {
	for _, task := range tasks {
		inner := false
		for _, part := range []string{"block", "rescue", "always"} {
			list, ok := task[part].([]any)
			inner = inner || ok
			for _, one := range list {
				if m, ok := one.(map[string]any); ok {
					all = append(all, flat([]map[string]any{m})...)
				}
			}
		}
		if !inner {
			all = append(all, task)
		}
	}
	return all
}
