package sign_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

func TestKeysAreKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	keys, err := sign.Open(path, sign.Config{})
	if err != nil || !keys.Empty() {
		t.Fatalf("a new file: %v, empty: %t", err, keys.Empty())
	}
	rights := []sign.Right{{Queues: "orders-*", Actions: []string{"send"}}, {Queues: "mail", Actions: []string{"receive", "manage"}}}
	key, secret, err := keys.Add(sign.Spec{Name: "shop", Rights: rights})
	if err != nil {
		t.Fatal(err)
	}
	rights[0].Queues = "*" // the caller's slice is not the key's
	if !regexp.MustCompile(`^FBK[A-Z2-7]{17}$`).MatchString(key.ID) || !regexp.MustCompile(`^[A-Za-z0-9_-]{40}$`).MatchString(secret) {
		t.Errorf("id %q, secret of %d characters", key.ID, len(secret))
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	again, err := sign.Open(path, sign.Config{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Lookup(key.ID)
	if err != nil || got.Name != "shop" || !got.Live() || len(got.Rights) != 2 || got.Rights[0].Queues != "orders-*" {
		t.Errorf("found %+v, %v", got, err)
	}
	if _, err := again.Lookup("FBKNOBODY"); forebay.CodeOf(err) != forebay.CodeNotFound {
		t.Errorf("an unknown id gives %v", err)
	}
	if _, err := again.Revoke(key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Revoke(key.ID); err != nil {
		t.Errorf("revoking again: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), secret) {
		t.Errorf("the secret of a revoked key is still in the file (%v)", err)
	}
	last, err := sign.Open(path, sign.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if all := last.List(); len(all) != 1 || all[0].Live() || last.Empty() {
		t.Errorf("listed %+v", all)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

func TestRightsMatchQueues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, queue string
		want           bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "ab", true}, {"a*", "ba", false}, {"*", "x.fifo", true}, {"*", "", true},
		{"*.fifo", "x.fifo", true}, {"*.fifo", "x", false}, {"a*b*c", "axxbyyc", true}, {"a*b*c", "acb", false},
		{"a*a", "a", false}, {"a**b", "ab", true}, {"*ab", "aab", true}, {"*a*", "bab", true}, {"*-a-*", "x-a-a-", true},
	} {
		k := sign.Key{Rights: []sign.Right{{Queues: c.pattern, Actions: []string{"send"}}}}
		if got := k.May(sign.Send, c.queue); got != c.want {
			t.Errorf("%s on %s: %t", c.pattern, c.queue, got)
		}
		if k.May(sign.Receive|sign.Manage, c.queue) {
			t.Errorf("%s on %s gives rights that it has not", c.pattern, c.queue)
		}
	}
}

func TestAddTellsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	k := open(t, sign.Config{})
	_, _, err := k.Add(sign.Spec{Name: "a\nb", Rights: []sign.Right{{Queues: "", Actions: []string{"write"}}, {Queues: "x"}}})
	for _, want := range []string{"name:", "queues:", `"write"`, "one or more of send"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	if _, _, err := k.Add(sign.Spec{Name: "test"}); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Errorf("a name that is taken gives %v", err)
	}
}

func TestFilesThatAreNotAsTheyShouldBe(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s3cr3t", 6) + "abcd"
	good := `{"version":1,"keys":[{"id":"FBK1","name":"a","rights":[{"queues":"*","actions":["send"]}],"createdAt":"2026-01-01T00:00:00Z","secret":"` + secret + `"}]}`
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		code       forebay.Code
	}{
		{"good", good, 0o600, ""},
		{"readable by others", good, 0o640, forebay.CodeInvalid},
		{"newer", strings.Replace(good, `"version":1`, `"version":2`, 1), 0o600, forebay.CodeTooNew},
		{"no version", strings.Replace(good, `"version":1,`, ``, 1), 0o600, forebay.CodeDamaged},
		{"unknown member", strings.Replace(good, `"name"`, `"expires":"soon","name"`, 1), 0o600, forebay.CodeDamaged},
		{"unknown action", strings.Replace(good, `"send"`, `"write"`, 1), 0o600, forebay.CodeDamaged},
		{"secret is no text", strings.Replace(good, `"`+secret+`"`, `["`+secret+`"]`, 1), 0o600, forebay.CodeDamaged},
		{"no secret", strings.Replace(good, secret, ``, 1), 0o600, forebay.CodeDamaged},
		{"cut", good[:len(good)-5], 0o600, forebay.CodeDamaged},
		{"empty", "", 0o600, forebay.CodeDamaged},
	} {
		path := filepath.Join(t.TempDir(), "keys.json")
		if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		_, err := sign.Open(path, sign.Config{})
		if forebay.CodeOf(err) != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error tells the secret: %v", c.name, err)
		}
	}
}

func TestAddThatCannotBeStoredGivesNoKey(t *testing.T) {
	t.Parallel()
	keys, err := sign.Open(filepath.Join(t.TempDir(), "nowhere", "keys.json"), sign.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, secret, err := keys.Add(sign.Spec{Name: "a"}); forebay.CodeOf(err) != forebay.CodeUnavailable || secret != "" || !keys.Empty() {
		t.Errorf("%v, a secret of %d, empty: %t", err, len(secret), keys.Empty())
	}
}
