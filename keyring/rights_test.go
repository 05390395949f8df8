package keyring_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/keyring"
)

// A secret is rotated without a gap, for a time that is stated; who opens the file next knows
// the same of it.
func TestRotate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "keys.json")
	clock := keyring.Config{Now: func() time.Time { return now }}
	r := open(t, path, clock)
	k, first := add(t, r, keyring.Spec{Name: "app", Queues: []string{"mail"}, Scopes: []keyring.Scope{keyring.ScopeView}})
	_, _, err := r.Rotate(k.ID, keyring.MaxOverlap+1)
	wantCode(t, err, forebay.CodeInvalid)
	_, _, err = r.Rotate("nobody", 0)
	wantCode(t, err, forebay.CodeNotFound)
	rotated, second, err := r.Rotate(k.ID, time.Hour)
	if err != nil || rotated.ID != k.ID || !rotated.OldUntil.Equal(now.Add(time.Hour)) || !strings.HasPrefix(second, rotated.Prefix) {
		t.Fatalf("%+v, %v", rotated, err)
	}
	works := func(when string, want bool, secrets ...string) {
		t.Helper()
		for _, ring := range []*keyring.Ring{r, open(t, path, clock)} {
			for i, secret := range secrets {
				if _, err := ring.Authenticate(secret, keyring.ScopeView); (err == nil) != want {
					t.Errorf("%s: secret %d: %v", when, i, err)
				}
			}
		}
	}
	works("within the hour", true, first, second)
	now = now.Add(time.Hour)
	works("after it", false, first)
	works("after it", true, second)
	_, third, err := r.Rotate(k.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	works("without a time to keep", false, first, second)
	works("without a time to keep", true, third)
	if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), third) || !strings.Contains(string(b), `"version": 2`) {
		t.Errorf("the file is %s, %v", b, err)
	}
	if _, err := r.Revoke(k.ID); err != nil {
		t.Fatal(err)
	}
	works("revoked", false, third)
	_, _, err = r.Rotate(k.ID, 0)
	wantCode(t, err, forebay.CodeConflict)
}

func TestKeysHoldForQueues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		queues string
		holds  string
		not    string
	}{
		{"", "mail img-a", ""}, {"mail", "mail", "mails amail"}, {"img-*", "img- img-a", "img ximg-a"}, {"*-low", "a-low -low", "low a-lower"},
		{"a*b*c", "abc axbxc abbcc", "acb abcd xabc"}, {"mail,img-*", "mail img-a", "other"}, {"*", "mail x", ""}, {"a*a", "aa aba", "a"},
	} {
		k := keyring.Key{Queues: strings.FieldsFunc(tt.queues, func(r rune) bool { return r == ',' })}
		for _, queue := range strings.Fields(tt.holds) {
			if !k.Holds(queue) {
				t.Errorf("%q does not hold for %s", tt.queues, queue)
			}
		}
		for _, queue := range strings.Fields(tt.not) {
			if k.Holds(queue) {
				t.Errorf("%q holds for %s", tt.queues, queue)
			}
		}
	}
	r := open(t, filepath.Join(t.TempDir(), "keys.json"), keyring.Config{})
	for _, spec := range []keyring.Spec{
		{Name: "x", Queues: []string{"mail"}}, // ingest, by default
		{Name: "x", Queues: []string{"mail"}, Scopes: []keyring.Scope{keyring.ScopeAdmin}},
		{Name: "x", Queues: []string{"m/l"}, Scopes: []keyring.Scope{keyring.ScopeView}},
		{Name: "x", Queues: []string{""}, Scopes: []keyring.Scope{keyring.ScopeView}},
	} {
		_, _, err := r.Add(spec)
		if wantCode(t, err, forebay.CodeInvalid); err != nil && !strings.Contains(err.Error(), "queues:") {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}
