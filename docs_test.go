package forebay_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The documents are held to the code where a test can do that.

var update = flag.Bool("update", false, "write the settings into docs/settings.md")

var docFiles = []string{"*.md", "docs/*.md", "examples/*/*.md", "bench/*.md"}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, pattern := range docFiles {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
					t.Errorf("%s leads to %s, which is not there", name, m[1])
				}
			}
		}
	}
}

// `forebay config --example` prints what docs/settings.md shows, so that there is
// one truth about settings.
func TestSettingsAreDocumentedAsTheyAre(t *testing.T) {
	example, err := os.ReadFile("cmd/forebay/internal/config/testdata/example.golden")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(doc), "```yaml\n")
	block, tail, _ := strings.Cut(rest, "```")
	if block == string(example) {
		return
	}
	if !*update {
		t.Fatal("the block of docs/settings.md is not what `forebay config --example` prints: go test -run Settings -update . writes it")
	}
	if err := os.WriteFile("docs/settings.md", []byte(head+"```yaml\n"+string(example)+"```"+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReadmeCallsTheProgramByOneName(t *testing.T) {
	// Why: a newcomer copies the lines in their order; a name that is not on the PATH ends that.
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "$ bin/forebay ") {
				calls++
			} else if strings.HasPrefix(line, "$ forebay ") {
				t.Errorf("%s calls the program by another name than bin/forebay: %s", name, line)
			}
		}
		if calls == 0 {
			t.Errorf("%s does not call the program", name)
		}
	}
}
