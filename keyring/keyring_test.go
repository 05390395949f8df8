package keyring_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/keyring"
)

func open(t *testing.T, path string, cfg keyring.Config) *keyring.Ring {
	t.Helper()
	r, err := keyring.Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func add(t *testing.T, r *keyring.Ring, s keyring.Spec) (keyring.Key, string) {
	t.Helper()
	k, secret, err := r.Add(s)
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

func wantCode(t *testing.T, err error, code forebay.Code) {
	t.Helper()
	if got := forebay.CodeOf(err); got != code {
		t.Errorf("code %q, want %q: %v", got, code, err)
	}
}

func TestKeyWorksFromAddToRevoke(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	r := open(t, path, keyring.Config{})
	if r.Required() {
		t.Error("an empty ring requires a key")
	}
	k, secret := add(t, r, keyring.Spec{Name: "ios", Rate: 5, Burst: 10, DailyQuota: 100, Origins: []string{"https://a.example"}})
	if !r.Required() || !strings.HasPrefix(secret, "fbk_") || len(secret) < 36 || !strings.HasPrefix(secret, k.Prefix) {
		t.Errorf("key %+v, secret %q", k, secret)
	}
	got, err := r.Authenticate(secret, keyring.ScopeIngest)
	if err != nil || !reflect.DeepEqual(got, k) {
		t.Errorf("got %+v, %v; want %+v", got, err, k)
	}
	for _, wrong := range []string{"", secret + "x", secret[:len(secret)-1], k.Prefix, k.ID} {
		_, err := r.Authenticate(wrong, keyring.ScopeIngest)
		wantCode(t, err, forebay.CodeUnauthorized)
	}
	_, err = r.Authenticate(secret, keyring.ScopeAdmin)
	wantCode(t, err, forebay.CodeUnauthorized)

	// The same holds for whoever opens the file next.
	again := open(t, path, keyring.Config{})
	if got, err := again.Authenticate(secret, keyring.ScopeIngest); err != nil || !reflect.DeepEqual(got, k) {
		t.Errorf("after reopening: %+v, %v", got, err)
	}

	revoked, err := r.Revoke(k.ID)
	if err != nil || revoked.Live() {
		t.Fatalf("revoke: %+v, %v", revoked, err)
	}
	_, err = r.Authenticate(secret, keyring.ScopeIngest)
	wantCode(t, err, forebay.CodeUnauthorized)
	if !r.Required() {
		t.Error("revoking the last key opened the ring")
	}
	if open(t, path, keyring.Config{}).Required() {
		t.Error("a ring without live keys requires one after the next start")
	}
	_, err = r.Revoke("nobody")
	wantCode(t, err, forebay.CodeNotFound)
}

func TestFileHoldsNoSecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	r := open(t, path, keyring.Config{})
	_, made := add(t, r, keyring.Spec{Name: "made"})
	_, given := add(t, r, keyring.Spec{Name: "given", Secret: "my-own-write-key-0001"})
	if given != "my-own-write-key-0001" {
		t.Errorf("given secret became %q", given)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{made, given, made[10:], given[6:]} {
		if strings.Contains(string(b), secret) {
			t.Errorf("the file holds %q", secret)
		}
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAddNamesAllProblems(t *testing.T) {
	t.Parallel()
	r := open(t, filepath.Join(t.TempDir(), "keys.json"), keyring.Config{})
	add(t, r, keyring.Spec{Name: "taken", Secret: "a-secret-that-is-known"})
	tests := []struct {
		spec keyring.Spec
		says []string
	}{
		{keyring.Spec{}, []string{"name:"}},
		{keyring.Spec{Name: "a/b"}, []string{"name:"}},
		{keyring.Spec{Name: "x", Secret: "short"}, []string{"secret: 16 to"}},
		{keyring.Spec{Name: "x", Secret: "long-enough-for-ingest", Scopes: []keyring.Scope{"admin"}}, []string{"secret: 32 to"}},
		{keyring.Spec{Name: "x", Secret: "has a space in the middle"}, []string{"secret:"}},
		{keyring.Spec{Name: "x", Rate: -1, Burst: -1, DailyQuota: -1, Scopes: []keyring.Scope{"all"}, Origins: []string{"app.example.com", "https://a.example/path"}},
			[]string{"rate:", "burst:", "dailyQuota:", `"all"`, `"app.example.com"`, `"https://a.example/path"`}},
		{keyring.Spec{Name: "x", Burst: 5}, []string{"burst:"}},
		{keyring.Spec{Name: "taken"}, []string{"name"}},
		{keyring.Spec{Name: "x", Secret: "a-secret-that-is-known"}, []string{"already"}},
	}
	for _, tt := range tests {
		_, _, err := r.Add(tt.spec)
		wantCode(t, err, forebay.CodeInvalid)
		for _, s := range tt.says {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Errorf("%+v: %v does not say %q", tt.spec, err, s)
			}
		}
	}
	if n := len(r.List()); n != 1 {
		t.Errorf("%d keys after refusals, want 1", n)
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	tests := []struct {
		allowed, origin string
		want            bool
	}{
		{"https://app.example.com", "https://app.example.com", true},
		{"https://app.example.com", "https://APP.example.com", true},
		{"https://app.example.com", "http://app.example.com", false},
		{"https://app.example.com", "https://app.example.com.evil.test", false},
		{"https://*.example.com", "https://a.b.example.com", true},
		{"https://*.example.com", "https://example.com", false},
		{"https://*.example.com", "https://evilexample.com", false},
		{"*", "null", true},
	}
	for _, tt := range tests {
		k := keyring.Key{Origins: []string{tt.allowed}}
		if got := k.AllowsOrigin(tt.origin); got != tt.want {
			t.Errorf("%s allows %s: %v", tt.allowed, tt.origin, got)
		}
	}
	r := open(t, filepath.Join(t.TempDir(), "keys.json"), keyring.Config{})
	k, _ := add(t, r, keyring.Spec{Name: "web", Origins: []string{"https://a.example"}})
	if !r.AllowsOrigin("https://a.example", keyring.ScopeIngest) || r.AllowsOrigin("https://b.example", keyring.ScopeIngest) {
		t.Error("the ring's preflight answer is not the key's")
	}
	if _, err := r.Revoke(k.ID); err != nil || r.AllowsOrigin("https://a.example", keyring.ScopeIngest) {
		t.Errorf("a revoked key answers preflights: %v", err)
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := open(t, filepath.Join(t.TempDir(), "keys.json"), keyring.Config{})
		k, _ := add(t, r, keyring.Spec{Name: "k", Rate: 10, Burst: 20})
		spend := func(n int, want time.Duration) {
			t.Helper()
			wait, err := r.Spend(k.ID, n)
			if wait != want || (err == nil) != (want == 0) {
				t.Fatalf("spend %d: wait %v, %v; want %v", n, wait, err, want)
			}
			if err != nil {
				wantCode(t, err, forebay.CodeLimited)
			}
		}
		spend(15, 0)
		spend(5, 0)
		spend(1, 100*time.Millisecond)
		spend(5, 500*time.Millisecond)
		time.Sleep(500 * time.Millisecond)
		spend(5, 0)
		time.Sleep(time.Hour)
		spend(50, 0) // larger than the burst: passes with a full bucket, into debt
		spend(1, 3100*time.Millisecond)
		spend(50, 5*time.Second)
		time.Sleep(5 * time.Second)
		spend(50, 0)

		_, err := r.Spend("nobody", 1)
		wantCode(t, err, forebay.CodeNotFound)
	})
}

func TestQuotaEndsWithTheUTCDayAndSurvivesARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC 2000-01-01
		path := filepath.Join(t.TempDir(), "keys.json")
		r := open(t, path, keyring.Config{})
		k, _ := add(t, r, keyring.Spec{Name: "k", DailyQuota: 100})
		time.Sleep(20 * time.Hour)
		if _, err := r.Spend(k.ID, 60); err != nil {
			t.Fatal(err)
		}
		wait, err := r.Spend(k.ID, 41)
		wantCode(t, err, forebay.CodeLimited)
		if wait != 4*time.Hour {
			t.Errorf("wait %v, want 4h", wait)
		}

		// What is spent is on disk after SaveEvery, without Close.
		time.Sleep(6 * time.Second)
		synctest.Wait()
		crashed := open(t, path, keyring.Config{})
		if got := crashed.UsedToday(k.ID); got != 60 {
			t.Errorf("a crash left %d counted, want 60", got)
		}

		// And at once after Close.
		if _, err := r.Spend(k.ID, 40); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r = open(t, path, keyring.Config{})
		_, err = r.Spend(k.ID, 1)
		wantCode(t, err, forebay.CodeLimited)
		time.Sleep(4 * time.Hour)
		if _, err := r.Spend(k.ID, 100); err != nil {
			t.Errorf("on the next day: %v", err)
		}
	})
}

// Another process may own the folder: who has counted nothing writes nothing.
func TestLookingAtARingWritesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	usage := strings.TrimSuffix(path, ".json") + ".usage.json"
	r := open(t, path, keyring.Config{})
	k, _ := add(t, r, keyring.Spec{Name: "k", DailyQuota: 100})
	if _, err := r.Spend(k.ID, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(usage)
	if err != nil {
		t.Fatal(err)
	}
	looker := open(t, path, keyring.Config{})
	if got := looker.UsedToday(k.ID); got != 1 {
		t.Errorf("%d used", got)
	}
	if err := looker.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(usage); err != nil || !os.SameFile(before, after) {
		t.Errorf("the counters were written: %v", err)
	}
}

func TestAnEventThatWasNotStoredIsNotCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := open(t, filepath.Join(t.TempDir(), "keys.json"), keyring.Config{})
		k, _ := add(t, r, keyring.Spec{Name: "k", DailyQuota: 10, Rate: 1, Burst: 10})
		for range 100 {
			if _, err := r.Spend(k.ID, 10); err != nil {
				t.Fatal(err)
			}
			r.Refund(k.ID, 10)
		}
		r.Refund(k.ID, 10) // more than was taken makes no more room than there is
		r.Refund("nobody", 10)
		time.Sleep(time.Second)
		if _, err := r.Spend(k.ID, 10); err != nil {
			t.Fatal(err)
		}
		_, err := r.Spend(k.ID, 1)
		wantCode(t, err, forebay.CodeLimited)
	})
}

// A clock that was years ahead must not hold a key to the quota of that day.
func TestAClockThatWasWrongCostsNoKey(t *testing.T) {
	t.Parallel()
	now := time.Date(2099, 1, 1, 0, 10, 0, 0, time.UTC)
	r := open(t, filepath.Join(t.TempDir(), "keys.json"), keyring.Config{Now: func() time.Time { return now }})
	k, _ := add(t, r, keyring.Spec{Name: "k", DailyQuota: 10})
	if _, err := r.Spend(k.ID, 10); err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Hour) // back over midnight
	_, err := r.Spend(k.ID, 1)
	wantCode(t, err, forebay.CodeLimited)
	now = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	if _, err := r.Spend(k.ID, 10); err != nil {
		t.Error(err)
	}
}

func TestDamagedCountersCostNoKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	r := open(t, path, keyring.Config{})
	k, _ := add(t, r, keyring.Spec{Name: "k", DailyQuota: 10})
	if err := os.WriteFile(filepath.Join(dir, "keys.usage.json"), []byte(`{"version":1,"day":"x`), 0o600); err != nil {
		t.Fatal(err)
	}
	r = open(t, path, keyring.Config{})
	if _, err := r.Spend(k.ID, 10); err != nil {
		t.Error(err)
	}
}

func TestTamperedFileIsRefusedAndLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	r := open(t, path, keyring.Config{})
	add(t, r, keyring.Spec{Name: "one", Rate: 3})
	add(t, r, keyring.Spec{Name: "two"})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	good := string(whole)
	hash := good[strings.Index(good, `"sha256": "`)+11:][:64]
	tests := map[string]struct {
		content string
		code    forebay.Code
	}{
		"empty":          {"", forebay.CodeDamaged},
		"half":           {good[:len(good)/2], forebay.CodeDamaged},
		"trailing":       {good + "{}", forebay.CodeDamaged},
		"unknown member": {strings.Replace(good, `"rate"`, `"rat"`, 1), forebay.CodeDamaged},
		"bad rate":       {strings.Replace(good, `"rate": 3`, `"rate": -3`, 1), forebay.CodeDamaged},
		"unknown scope":  {strings.Replace(good, `"ingest"`, `"root"`, 1), forebay.CodeDamaged},
		"short hash":     {strings.Replace(good, hash, hash[:62], 1), forebay.CodeDamaged},
		"long hash":      {strings.Replace(good, hash, hash+"00", 1), forebay.CodeDamaged},
		"no hash":        {strings.Replace(good, hash, "", 1), forebay.CodeDamaged},
		"not hex":        {strings.Replace(good, hash, "zz"+hash[2:], 1), forebay.CodeDamaged},
		"no version":     {strings.Replace(good, `"version": 1,`, ``, 1), forebay.CodeDamaged},
		"newer":          {strings.Replace(good, `"version": 1`, `"version": 3`, 1), forebay.CodeTooNew},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := filepath.Join(t.TempDir(), "keys.json")
			if err := os.WriteFile(p, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := keyring.Open(p, keyring.Config{})
			wantCode(t, err, tt.code)
			if err != nil && !strings.Contains(err.Error(), p) {
				t.Errorf("%v does not name the file", err)
			}
			if after, _ := os.ReadFile(p); string(after) != tt.content {
				t.Error("the file was changed")
			}
		})
	}
}

// A write that fails leaves the old file whole and the ring as the file says.
func TestFailedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "keys.json")
	r := open(t, path, keyring.Config{})
	k, secret := add(t, r, keyring.Spec{Name: "first"})
	moved := dir + ".away" // works for root too, unlike a mode
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	_, _, err := r.Add(keyring.Spec{Name: "second"})
	wantCode(t, err, forebay.CodeUnavailable)
	_, err = r.Revoke(k.ID)
	wantCode(t, err, forebay.CodeUnavailable)
	if _, err := r.Authenticate(secret, keyring.ScopeIngest); err != nil {
		t.Error(err)
	}
	if got := open(t, filepath.Join(moved, "keys.json"), keyring.Config{}).List(); !reflect.DeepEqual(got, r.List()) {
		t.Errorf("file %+v, ring %+v", got, r.List())
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	r := open(t, filepath.Join(t.TempDir(), "keys.json"), keyring.Config{SaveEvery: time.Millisecond})
	k, secret := add(t, r, keyring.Spec{Name: "k", DailyQuota: 1000})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 100 {
				if _, err := r.Authenticate(secret, keyring.ScopeIngest); err != nil {
					t.Error(err)
				}
				if _, err := r.Spend(k.ID, 1); err != nil {
					t.Error(err)
				}
			}
			other, _, err := r.Add(keyring.Spec{Name: fmt.Sprint("other", i)})
			if err != nil {
				t.Error(err)
			}
			if _, err := r.Revoke(other.ID); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := r.UsedToday(k.ID); got != 400 {
		t.Errorf("%d spent, want 400", got)
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	r, err := keyring.Open(filepath.Join(b.TempDir(), "keys.json"), keyring.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	_, secret, err := r.Add(keyring.Spec{Name: "k"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Authenticate(secret, keyring.ScopeIngest); err != nil {
			b.Fatal(err)
		}
	}
}
