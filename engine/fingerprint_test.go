package engine_test

import (
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func TestCauseTextKeepsWhatIsCommon(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "",
		"dial tcp 10.0.0.7:5432: connect: connection refused":          "dial tcp #.#.#.#:#: connect: connection refused",
		`duplicate key value violates unique constraint "orders_pkey"`: "duplicate key value violates unique constraint …",
		"no user 0198f2c4-7d1e-7a3b-9c55-0a1b2c3d4e5f in tenant 42":    "no user # in tenant #",
		"cannot read 'a b' and `c`, don't ask":                         "cannot read … and …, don't ask",
		"object deadbeefcafe is gone":                                  "object deadbeefcafe is gone", // words of hex without a digit are words
		"object de4dbeefcafe is gone, 01J8ZK4T9QF5M3X7V2B6N8D0CS too":  "object # is gone, # too",
		"timeout after 1500ms, attempt 3 of 10":                        "timeout after #ms, attempt # of #",
		"an open \"quote":                                              "an open \"quote",
		"größe 7 überschritten":                                        "größe # überschritten",
		"the user user_17 of http2 said 2026-11-30T03:48:14Z":          "the user user_# of http# said #-#-#T#:#:#Z",
		strings.Repeat("é", 400):                                       strings.Repeat("é", 256),
	} {
		if got := engine.CauseText(text); got != want {
			t.Errorf("%q gave %q, want %q", text, got, want)
		}
	}
}

func TestFingerprintsTellCausesApart(t *testing.T) {
	t.Parallel()
	print := func(queue, kind, code, text string) uint64 {
		f, _ := engine.DeadFingerprint(queue, kind, forebay.Cause{Code: code, Message: text})
		return f
	}
	one := print("q", "k", "c", "user 7 is 'x'")
	if other := print("q", "k", "c", "user 12345 is 'y z'"); other != one {
		t.Error("numbers and quoted values make another group")
	}
	seen := map[uint64]bool{one: true}
	for _, f := range []uint64{
		print("p", "k", "c", "user 7 is 'x'"), print("q", "l", "c", "user 7 is 'x'"), print("q", "k", "d", "user 7 is 'x'"),
		print("q", "k", "c", "user 7 was 'x'"), print("qk", "", "c", "user 7 is 'x'"), engine.DeadFingerprintRest("q", "k", "c"),
	} {
		if f == 0 || seen[f] {
			t.Errorf("%d is not of its own", f)
		}
		seen[f] = true
	}
}

func FuzzCauseText(f *testing.F) {
	f.Add("a 'b' 7 \xff")
	f.Fuzz(func(t *testing.T, s string) {
		once := engine.CauseText(s)
		if len(once) > 512 || strings.ToValidUTF8(once, "") != once {
			t.Errorf("%q", once)
		}
	})
}
