package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func documentCases() []testCase {
	return []testCase{
		{name: "document/put, get, change, delete", needs: Documenting, run: documentLife},
		{name: "document/only over the revision that is meant", needs: Documenting, run: documentRevisions},
		{name: "document/of many who put at once one wins", needs: Documenting, run: documentConcurrently},
		{name: "document/listed by key", needs: Documenting, run: documentList},
		{name: "document/gone when it expires", needs: Documenting, run: documentExpires},
		{name: "document/every byte, every size", needs: Documenting, run: documentValues},
		{name: "document/bounds", needs: Documenting, run: documentBounds},
		{name: "document/outlives a restart", invariants: []int{1}, needs: Documenting, reopens: true, run: documentReopen},
	}
}

func doc(key, value string, rev int64) engine.Document {
	return engine.Document{Collection: "c", Key: key, Value: []byte(value), Rev: rev}
}

// stored puts a document, and gives it with its revision.
func (v *env) stored(d engine.Document) engine.Document {
	v.Helper()
	got, err := able[engine.Documents](v).PutDocument(v.ctx, d)
	if err != nil {
		v.failf("put of %q: %v", d.Key, err)
	}
	if got.Rev <= 0 || got.Key != d.Key || got.Collection != d.Collection {
		v.failf("put of %+v gave %+v", d, got)
	}
	return got
}

// holds wants a document with this value.
func (v *env) holds(key, value string) engine.Document {
	v.Helper()
	got, err := able[engine.Documents](v).Document(v.ctx, "c", key)
	if err != nil || string(got.Value) != value || got.Key != key || got.Collection != "c" {
		v.failf("document %q is %+v, %v; want %q", key, got, err, value)
	}
	return got
}

func (v *env) noDocument(key string) {
	v.Helper()
	if got, err := able[engine.Documents](v).Document(v.ctx, "c", key); forebay.CodeOf(err) != forebay.CodeNotFound {
		v.failf("document %q gave %+v, %v; want code not_found", key, got, err)
	}
}

func documentLife(v *env) {
	docs := able[engine.Documents](v)
	v.noDocument("a")
	first := v.stored(doc("a", "1", 0))
	if got := v.holds("a", "1"); got.Rev != first.Rev {
		v.failf("put says revision %d, get %d", first.Rev, got.Rev)
	}
	second := v.stored(doc("a", "2", first.Rev))
	third := v.stored(doc("a", "3", engine.AnyRev))
	if second.Rev <= first.Rev || third.Rev <= second.Rev {
		v.failf("the revisions are %d, %d, %d; want them to grow", first.Rev, second.Rev, third.Rev)
	}
	v.holds("a", "3")
	v.stored(engine.Document{Collection: "other", Key: "a", Value: []byte("o")})
	v.holds("a", "3")
	if err := docs.DeleteDocument(v.ctx, "c", "a", third.Rev); err != nil {
		v.failf("delete: %v", err)
	}
	v.noDocument("a")
	if err := docs.DeleteDocument(v.ctx, "c", "a", engine.AnyRev); forebay.CodeOf(err) != forebay.CodeNotFound {
		v.failf("delete of nothing gave %v", err)
	}
	if got, err := docs.Document(v.ctx, "other", "a"); err != nil || string(got.Value) != "o" {
		v.failf("the same key of another collection is %+v, %v", got, err)
	}
	if again := v.stored(doc("a", "4", 0)); again.Rev <= third.Rev {
		v.failf("after its deletion the revision is %d, it was %d", again.Rev, third.Rev)
	}
}

func documentRevisions(v *env) {
	docs := able[engine.Documents](v)
	if got, err := docs.PutDocument(v.ctx, doc("a", "x", 7)); forebay.CodeOf(err) != forebay.CodeConflict {
		v.failf("put over a revision of nothing gave %+v, %v", got, err)
	}
	v.noDocument("a")
	first := v.stored(doc("a", "1", 0))
	second := v.stored(doc("a", "2", first.Rev))
	for _, rev := range []int64{0, first.Rev, second.Rev + 1} {
		got, err := docs.PutDocument(v.ctx, doc("a", "x", rev))
		if forebay.CodeOf(err) != forebay.CodeConflict || got.Rev != second.Rev || string(got.Value) != "2" {
			v.failf("put over revision %d gave %+v, %v; want a conflict and the stored one", rev, got, err)
		}
		if err := docs.DeleteDocument(v.ctx, "c", "a", rev); forebay.CodeOf(err) != forebay.CodeConflict {
			v.failf("delete of revision %d gave %v, want a conflict", rev, err)
		}
	}
	v.holds("a", "2")
}

func documentConcurrently(v *env) {
	docs := able[engine.Documents](v)
	now := v.stored(doc("a", "", 0))
	for round := range 5 {
		var won atomic.Int32
		v.each(10, func(i int) error {
			_, err := docs.PutDocument(v.ctx, doc("a", fmt.Sprint(round, ".", i), now.Rev))
			if err == nil {
				won.Add(1)
			} else if forebay.CodeOf(err) == forebay.CodeConflict {
				err = nil
			}
			return err
		})
		if won.Load() != 1 {
			v.failf("%d of 10 puts over one revision were done", won.Load())
		}
		got, err := docs.Document(v.ctx, "c", "a")
		if err != nil {
			v.failf("get: %v", err)
		}
		now = got
	}
}

func documentList(v *env) {
	docs := able[engine.Documents](v)
	keys := []string{"B", "a", "a/1", "a/2", "aa", "b", "ä", "日本"}
	slices.Sort(keys)
	for _, i := range []int{3, 0, 7, 5, 2, 6, 1, 4} {
		v.stored(doc(keys[i], "value of "+keys[i], 0))
	}
	v.stored(engine.Document{Collection: "c2", Key: "other"})
	for _, limit := range []int{1, 3, 8, engine.MaxDocuments} {
		var got []string
		for after := ""; ; {
			page, err := docs.Documents(v.ctx, "c", after, limit)
			if err != nil || len(page) > limit {
				v.failf("list of at most %d gave %d, %v", limit, len(page), err)
			}
			if len(page) == 0 {
				break
			}
			for _, d := range page {
				if string(d.Value) != "value of "+d.Key || d.Rev == 0 || d.Collection != "c" {
					v.failf("listed %+v", d)
				}
				got, after = append(got, d.Key), d.Key
			}
		}
		if !slices.Equal(got, keys) {
			v.failf("by pages of %d the keys are %v, want %v", limit, got, keys)
		}
	}
	if page, err := docs.Documents(v.ctx, "none", "", 10); err != nil || len(page) > 0 {
		v.failf("an unknown collection has %+v, %v", page, err)
	}
}

func documentExpires(v *env) {
	docs := able[engine.Documents](v)
	d := doc("a", "1", 0)
	d.Expires = time.Now().Add(5 * v.unit)
	first := v.stored(d)
	v.stored(doc("b", "2", 0))
	v.pass(4 * v.unit)
	v.near("the expiry", v.holds("a", "1").Expires, d.Expires, d.Expires)
	v.pass(2 * v.unit)
	v.noDocument("a")
	if page, err := docs.Documents(v.ctx, "c", "", 10); err != nil || len(page) != 1 || page[0].Key != "b" {
		v.failf("listed after the expiry: %+v, %v", page, err)
	}
	if _, err := docs.PutDocument(v.ctx, doc("a", "x", first.Rev)); forebay.CodeOf(err) != forebay.CodeConflict {
		v.failf("put over the revision of one that has expired gave %v", err)
	}
	if again := v.stored(doc("a", "3", 0)); again.Rev <= first.Rev {
		v.failf("after the expiry the revision is %d, it was %d", again.Rev, first.Rev)
	}
	v.pass(time.Hour)
	v.holds("a", "3") // the new one does not expire
}

func documentValues(v *env) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i, value := range [][]byte{nil, {0}, all, bytes.Repeat(all, 300), bytes.Repeat(all, engine.MaxDocumentBytes/256)} {
		key := fmt.Sprint("k", i)
		given := bytes.Clone(value)
		v.stored(engine.Document{Collection: "c", Key: key, Value: given})
		for j := range given {
			given[j] = 'x' // it is not kept
		}
		v.holds(key, string(value))
	}
}

func documentBounds(v *env) {
	docs := able[engine.Documents](v)
	long := strings.Repeat("x", engine.MaxDocumentKey)
	v.stored(engine.Document{Collection: long[:engine.MaxCollectionBytes], Key: long})
	for name, d := range map[string]engine.Document{
		"no collection": {Key: "k"}, "no key": {Collection: "c"}, "a long key": {Collection: "c", Key: long + "x"},
		"a long collection": {Collection: long, Key: "k"}, "a revision below any": doc("k", "", -2),
	} {
		if _, err := docs.PutDocument(v.ctx, d); forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("put with %s gave %v, want code invalid", name, err)
		}
	}
	if _, err := docs.PutDocument(v.ctx, doc("k", string(make([]byte, engine.MaxDocumentBytes+1)), 0)); forebay.CodeOf(err) != forebay.CodeTooLarge {
		v.failf("put of too large a value gave %v", err)
	}
	for _, limit := range []int{-1, 0, engine.MaxDocuments + 1} {
		if _, err := docs.Documents(v.ctx, "c", "", limit); forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("list of %d gave %v, want code invalid", limit, err)
		}
	}
	var e *forebay.Error
	if _, err := docs.PutDocument(v.ctx, engine.Document{Key: "k"}); !errors.As(err, &e) || e.Field == "" {
		v.failf("the error %v names no field", err)
	}
}

func documentReopen(v *env) {
	d := doc("late", "1", 0)
	d.Expires = time.Now().Add(5 * v.unit)
	v.stored(d)
	first := v.stored(doc("a", "1", 0))
	second := v.stored(doc("a", "2", first.Rev))
	gone := v.stored(doc("gone", "1", 0))
	if err := able[engine.Documents](v).DeleteDocument(v.ctx, "c", "gone", gone.Rev); err != nil {
		v.failf("delete: %v", err)
	}
	v.reopen()
	v.noDocument("gone")
	if got := v.holds("a", "2"); got.Rev != second.Rev {
		v.failf("the revision was %d and is %d", second.Rev, got.Rev)
	}
	v.holds("late", "1")
	v.pass(6 * v.unit)
	v.reopen()
	v.noDocument("late")
	if again := v.stored(doc("gone", "2", 0)); again.Rev <= gone.Rev {
		v.failf("after a deletion and a restart the revision is %d, it was %d", again.Rev, gone.Rev)
	}
}
