package sealed_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sealed"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// raw gives what is stored of a job.
func raw(t testing.TB, e *sqlite.Engine, id string) []byte {
	t.Helper()
	return must[forebay.Job](t)(e.Job(t.Context(), id)).Payload
}

// A payload that was changed, or put in the place of another, reaches no handler: it is a
// dead letter, that says so and has what was stored. Those beside it are handed out.
func TestTampered(t *testing.T) {
	t.Parallel()
	inner := file(t, filepath.Join(t.TempDir(), "forebay.db"))
	defer inner.Close()
	e := over(t, inner, keys(t, "k1"))
	send(t, e, job("good"), job("victim"))
	stored := raw(t, inner, "good")
	changed := bytes.Clone(raw(t, inner, "victim"))
	changed[len(changed)-1] ^= 1
	for id, payload := range map[string][]byte{"swapped": stored, "changed": changed, "cut": stored[:60], "none": stored[:len("xfb1")]} {
		m := job(id)
		m.Payload = payload
		send(t, inner, m)
	}
	ds := take(t, e, 2)
	if string(ds[0].Payload) != string(job("").Payload) {
		t.Errorf("%s says %q", ds[0].ID, ds[0].Payload)
	}
	letters := dead(t, e)
	if len(letters) != 4 {
		t.Fatalf("%d dead letters, want 4: %+v", len(letters), letters)
	}
	for _, l := range letters {
		if l.Cause.Code != "tampered" || l.Cause.Message == "" || l.Attempts != 0 || !bytes.HasPrefix(l.Message.Payload, stored[:4]) {
			t.Errorf("%s died of %+v after %d attempts, and says %q", l.Message.ID, l.Cause, l.Attempts, l.Message.Payload)
		}
	}
	// What cannot be opened is not sent as another message, whose payload it would be.
	again := job("edited")
	again.Payload = stored
	if res, err := e.Send(t.Context(), []forebay.Message{again, job("beside")}); err != nil || forebay.CodeOf(res[0].Err) != forebay.CodeInvalid || res[1].Err != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// Results, causes and documents do not open in another's place either.
func TestSwappedBesidePayloads(t *testing.T) {
	t.Parallel()
	inner := file(t, filepath.Join(t.TempDir(), "forebay.db"))
	defer inner.Close()
	e := over(t, inner, keys(t, "k1"))
	send(t, e, job("a"), job("b"))
	ds := take(t, e, 2)
	settle(t, e, forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Ack, Result: []byte(`"` + secret + `"`)})
	result := must[forebay.Job](t)(inner.Job(t.Context(), ds[0].ID)).Result
	settle(t, inner, forebay.Settlement{Receipt: bareOf(ds[1].Receipt), Verdict: forebay.Ack, Result: result})
	if j := must[forebay.Job](t)(as[engine.Jobs](t, e).Job(t.Context(), ds[1].ID)); string(j.Result) != string(result) {
		t.Errorf("a result of another job opens: %s", j.Result)
	}
	docs := as[engine.Documents](t, e)
	d := must[engine.Document](t)(docs.PutDocument(t.Context(), engine.Document{Collection: "c", Key: "k", Value: []byte(secret)}))
	d = must[engine.Document](t)(inner.Document(t.Context(), "c", "k"))
	d.Key, d.Rev = "other", 0
	must[engine.Document](t)(inner.PutDocument(t.Context(), d))
	if _, err := docs.Document(t.Context(), "c", "other"); forebay.CodeOf(err) != forebay.CodeDamaged || !strings.Contains(err.Error(), "other of c") {
		t.Errorf("a document of another key: %v", err)
	}
	if _, err := docs.Document(t.Context(), sealed.Collection, "0000000000000001"); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Errorf("the data key is shown: %v", err)
	}
}

func bareOf(r forebay.Receipt) forebay.Receipt {
	inner, _, _ := strings.Cut(string(r), "~s.")
	return forebay.Receipt(inner)
}

// A message whose key is not here waits, uncounted, and is handed out when the key is back.
func TestUnknownKeyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type transport struct{ engine.Engine } // keeps no documents: messages carry their data keys
		inner := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))
		defer inner.Close()
		send(t, over(t, transport{inner}, keys(t, "k1")), job("a"))
		other := over(t, transport{inner}, keys(t, "k2"))
		take(t, other, 0)
		if err := other.Trouble(t.Context()); forebay.CodeOf(err) != forebay.CodeUnauthorized || !strings.Contains(err.Error(), "k1") {
			t.Errorf("health says %v", err)
		}
		time.Sleep(31 * time.Second)
		take(t, other, 0)
		time.Sleep(31 * time.Second)
		both := over(t, transport{inner}, keys(t, "k2", "k1"))
		d := take(t, both, 1)[0]
		if string(d.Payload) != string(job("").Payload) || d.Attempt != 1 || d.Deliveries != 1 {
			t.Errorf("%q comes for attempt %d, handed out %d times", d.Payload, d.Attempt, d.Deliveries)
		}
		if err := both.Trouble(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := both.Rotate(t.Context(), nil); forebay.CodeOf(err) != forebay.CodeUnsupported {
			t.Errorf("rotating what carries its keys: %v", err)
		}
	})
}

// After a rotation the old key opens nothing that is there, and is not needed. One that is
// cut off goes on.
func TestRotate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forebay.db")
	inner := file(t, path)
	defer func() { inner.Close() }()
	everything(t, over(t, inner, keys(t, "k1")))
	if _, err := sealed.New(t.Context(), inner, sealed.Config{Keys: keys(t, "k2")}); forebay.CodeOf(err) != forebay.CodeUnauthorized || !strings.Contains(err.Error(), "k1") {
		t.Fatalf("opened without the key: %v", err)
	}
	under := job("under k3")
	under.Payload = []byte(`"another"`)
	send(t, over(t, inner, keys(t, "k3", "k1")), under)
	e := over(t, inner, keys(t, "k2", "k1", "k3"))
	allOpens(t, e)
	before := must[sealed.Status](t)(e.Status(t.Context()))
	if before.Old != 2 || len(before.DataKeys) != 3 || before.Current != "k2" || !before.DataKeys[2].Seals {
		t.Errorf("before: %+v", before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n, err := e.Rotate(ctx, func(done, _ int) {
		if done == 1 {
			cancel()
		}
	})
	if n != 1 || err == nil {
		t.Fatalf("cut off: %d, %v", n, err)
	}
	allOpens(t, e)
	var told string
	n, err = e.Rotate(t.Context(), func(done, of int) { told += fmt.Sprint(done, of, ";") })
	if n != 1 || err != nil || told != "1 3;2 3;3 3;" {
		t.Errorf("%d more, told %s, %v", n, told, err)
	}
	if st := must[sealed.Status](t)(e.Status(t.Context())); st.Old != 0 {
		t.Errorf("after: %+v", st)
	}
	inner.Close()
	inner = file(t, path)
	again := over(t, inner, keys(t, "k2"))
	allOpens(t, again)
	if j := must[forebay.Job](t)(as[engine.Jobs](t, again).Job(t.Context(), "under k3")); string(j.Payload) != string(under.Payload) {
		t.Errorf("%q", j.Payload)
	}
	if st := must[sealed.Status](t)(again.Status(t.Context())); len(st.DataKeys) != 3 {
		t.Errorf("a start made a data key: %+v", st)
	}
}

// spy sees what is stored.
type spy struct {
	*sqlite.Engine
	prints []uint64
}

func (s *spy) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	for _, m := range msgs {
		s.prints = append(s.prints, m.Fingerprint)
	}
	return s.Engine.Send(ctx, msgs)
}

// The same twice is told as the same, also after a start; and what tells it is no hash that
// anybody can make of a guess.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	inner := &spy{Engine: must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))}
	defer inner.Close()
	send(t, over(t, inner, keys(t, "k1")), job("a"))
	other := job("a")
	other.Payload = []byte("other")
	for i, m := range []forebay.Message{job("a"), other} {
		res := must[[]forebay.SendResult](t)(over(t, inner, keys(t, "k1")).Send(t.Context(), []forebay.Message{m}))
		if !res[0].Duplicate || res[0].Conflict != (i == 1) {
			t.Errorf("%q: %+v", m.Payload, res[0])
		}
	}
	if p := inner.prints; p[0] == 0 || p[0] == xxhash.Sum64(job("").Payload) || p[0] != p[1] {
		t.Errorf("fingerprints %v", p)
	}
}

// FuzzOpen: whatever stands in a store, it opens only as what was sealed, and a message is
// handed out or dead, never lost and never as it is stored.
func FuzzOpen(f *testing.F) {
	inner := must[*sqlite.Engine](f)(sqlite.Open(sqlite.Config{}))
	f.Cleanup(func() { inner.Close() })
	e := must[*sealed.Engine](f)(sealed.New(f.Context(), inner, sealed.Config{Keys: keys(f, "k1")}))
	send(f, e, job("seed"))
	seed := raw(f, inner, "seed")
	take(f, e, 1)
	f.Add(0, byte(0), []byte("plain"))
	for _, at := range []int{4, 5, 12, 20, 30, 37, 44, len(seed) - 1} {
		f.Add(at, byte(1), []byte{})
	}
	f.Add(0, byte(0), append([]byte("\xf5fb1\x01\x02k1"), make([]byte, 200)...))
	f.Add(0, byte(0), []byte(`"forebay-sealed:`+base64.RawURLEncoding.EncodeToString(seed)+`"`))
	n := 0
	f.Fuzz(func(t *testing.T, at int, flip byte, whole []byte) {
		payload := whole
		if len(whole) == 0 {
			payload = bytes.Clone(seed)
			payload[uint(at)%uint(len(payload))] ^= flip
		}
		n++
		m := forebay.Message{ID: fmt.Sprint("f", n), Queue: "fuzz", Payload: payload}
		send(t, inner, m)
		ds := must[[]forebay.Delivery](t)(e.Receive(t.Context(), engine.Receive{Queue: "fuzz", Max: 10}))
		where := must[engine.Location](t)(inner.Locate(t.Context(), m.ID))
		if !bytes.HasPrefix(payload, seed[:4]) {
			if len(ds) != 1 || !bytes.Equal(ds[0].Payload, payload) {
				t.Errorf("%q, which is plain, was not handed out as it is", payload)
			}
			settle(t, e, forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Ack})
			return
		}
		if len(ds) > 0 || where.Where != engine.WhereDead && where.Where != engine.WhereDelayed { // delayed: its key may be elsewhere
			t.Errorf("%q is %s, and %d were handed out", payload, where.Where, len(ds))
		}
	})
}
