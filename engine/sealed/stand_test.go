package sealed_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sealed"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// secret is in all that may not be found in a file.
const secret = "the-secret-of-Ada"

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// keys are those named, the first is current.
func keys(t testing.TB, ids ...string) *sealed.Keys {
	all := map[string][]byte{}
	for _, id := range ids {
		all[id] = bytes.Repeat([]byte(id[len(id)-1:]), sealed.KeyBytes)
	}
	return must[*sealed.Keys](t)(sealed.NewKeys(ids[0], all))
}

// opening are keys that only open.
func opening(t testing.TB, id string) *sealed.Keys {
	return must[*sealed.Keys](t)(sealed.NewKeys("", map[string][]byte{id: bytes.Repeat([]byte(id[len(id)-1:]), sealed.KeyBytes)}))
}

func over(t testing.TB, inner engine.Engine, k *sealed.Keys) *sealed.Engine {
	t.Helper()
	return must[*sealed.Engine](t)(sealed.New(t.Context(), inner, sealed.Config{Keys: k}))
}

func file(t testing.TB, path string) *sqlite.Engine {
	t.Helper()
	return must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{Path: path, Log: sqlite.LogConfig{Age: time.Hour}}))
}

func as[T any](t testing.TB, e engine.Engine) T {
	t.Helper()
	able, ok := engine.As[T](e)
	if !ok {
		t.Fatalf("%T has no %T", e, *new(T))
	}
	return able
}

func job(id string) forebay.Message {
	return forebay.Message{ID: id, Queue: "q", Kind: "mail", Payload: []byte(`{"to":"` + secret + `","n":7}`), Job: &forebay.JobOptions{}}
}

func send(t testing.TB, e engine.Engine, msgs ...forebay.Message) {
	t.Helper()
	for _, r := range must[[]forebay.SendResult](t)(e.Send(t.Context(), msgs)) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

func take(t testing.TB, e engine.Engine, n int) []forebay.Delivery {
	t.Helper()
	ds := must[[]forebay.Delivery](t)(e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 100}))
	if len(ds) != n {
		t.Fatalf("%d deliveries, want %d", len(ds), n)
	}
	return ds
}

func settle(t testing.TB, e engine.Engine, ss ...forebay.Settlement) {
	t.Helper()
	for _, err := range must[[]error](t)(e.Settle(t.Context(), ss)) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func dead(t testing.TB, e engine.Engine) []forebay.DeadLetter {
	t.Helper()
	return must[[]forebay.DeadLetter](t)(as[engine.DeadLetters](t, e).Dead(t.Context(), engine.DeadQuery{}))
}

// found names the files of a folder that have the secret in them.
func found(t testing.TB, dir string) (names []string) {
	t.Helper()
	for _, f := range must[[]os.DirEntry](t)(os.ReadDir(dir)) {
		b := must[[]byte](t)(os.ReadFile(filepath.Join(dir, f.Name())))
		if bytes.Contains(b, []byte(secret)) {
			names = append(names, f.Name())
		}
	}
	return names
}
