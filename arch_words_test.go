package forebay_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unwanted words, in code, tests, scripts and docs, each with its reason. A form says what stands
// around them. They are looked for by themselves first, which is much quicker.
var unwanted = []struct {
	form  string
	words []string // lower case, where the form does not care about it
	why   string
}{
	{`\b(%s)\b`, []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}, "what is not done is an issue, not a comment"},
	{`(?i)\b(%s)(s|ed|d)?\b`, []string{"n" + "ack", "d" + "lq", "re" + "queue"}, "the glossary's words are: settle, dead letter, retry, release"},
	{`(%s)[a-z]`, []string{"/home/", "/Users/", "/ro" + "ot/", "/wo" + "rk/"}, "a path of somebody's machine"},
	{`%s`, []string{"registry" + ".npmjs", "proxy" + ".golang"}, "where packages come from is the machine's setting"},
}

func TestUnwantedWords(t *testing.T) {
	// Why: one thing has one name, and nothing names a machine.
	list, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var forms []*regexp.Regexp
	for _, u := range unwanted {
		words := make([]string, len(u.words))
		for i, word := range u.words {
			words[i] = regexp.QuoteMeta(word)
		}
		forms = append(forms, regexp.MustCompile(fmt.Sprintf(u.form, strings.Join(words, "|"))))
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		switch path.Base(name) {
		case "arch_words_test.go", "LICENSE", "go.sum", "package-lock.json":
			continue
		}
		if strings.Contains(name, "testdata/") {
			continue // formats and inputs, as they came
		}
		text, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			continue // deleted meanwhile, or not text
		}
		lower := bytes.ToLower(text)
		for i, u := range unwanted {
			in := text
			if strings.HasPrefix(u.form, "(?i)") {
				in = lower
			}
			if !slices.ContainsFunc(u.words, func(word string) bool { return bytes.Contains(in, []byte(word)) }) {
				continue
			}
			for _, at := range forms[i].FindAllIndex(text, -1) {
				t.Errorf("%s:%d: %q: %s", name, 1+bytes.Count(text[:at[0]], []byte("\n")), text[at[0]:at[1]], u.why)
			}
		}
	}
}
