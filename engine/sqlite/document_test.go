package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

func put(t testing.TB, e engine.Documents, d engine.Document) engine.Document {
	t.Helper()
	d, err := e.PutDocument(context.Background(), d)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func wantCode(t testing.TB, err error, code forebay.Code) {
	t.Helper()
	if forebay.CodeOf(err) != code {
		t.Fatalf("the error is %v, with the code %q; want %q", err, forebay.CodeOf(err), code)
	}
}

// rows counts those of a table.
func rows(t testing.TB, e *sqlite.Engine, sql string) int64 {
	t.Helper()
	n, err := e.Int(sql)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDocumentRevisions(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path})
	doc := engine.Document{Collection: "c", Key: "k", Value: []byte("one")}
	first := put(t, e, doc)
	if first.Rev <= 0 || string(first.Value) != "one" {
		t.Fatalf("%+v", first)
	}
	got, err := e.PutDocument(ctx, doc) // Rev 0: there must be none
	wantCode(t, err, forebay.CodeConflict)
	if got.Rev != first.Rev || string(got.Value) != "one" {
		t.Fatalf("the conflict gives %+v", got)
	}
	doc.Rev, doc.Value = first.Rev, nil
	second := put(t, e, doc)
	if second.Rev <= first.Rev {
		t.Fatalf("revision %d after %d", second.Rev, first.Rev)
	}
	wantCode(t, e.DeleteDocument(ctx, "c", "k", first.Rev), forebay.CodeConflict)
	if err := e.DeleteDocument(ctx, "c", "k", second.Rev); err != nil {
		t.Fatal(err)
	}
	wantCode(t, e.DeleteDocument(ctx, "c", "k", engine.AnyRev), forebay.CodeNotFound)
	_, err = e.PutDocument(ctx, engine.Document{Collection: "c", Key: "k", Rev: second.Rev})
	wantCode(t, err, forebay.CodeConflict)
	third := put(t, e, engine.Document{Collection: "c", Key: "k", Rev: engine.AnyRev, Value: []byte("three")})
	if third.Rev <= second.Rev {
		t.Fatalf("one made anew has revision %d after %d", third.Rev, second.Rev)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, sqlite.Config{Path: path})
	if got, err = e.Document(ctx, "c", "k"); err != nil || got.Rev != third.Rev || string(got.Value) != "three" {
		t.Fatalf("after a restart: %+v, %v", got, err)
	}
	_, err = e.Document(ctx, "other", "k")
	wantCode(t, err, forebay.CodeNotFound)
}

// Of many that put the same revision at once, one does.
func TestDocumentOneWins(t *testing.T) {
	e := open(t, sqlite.Config{})
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			_, err := e.PutDocument(context.Background(), engine.Document{Collection: "c", Key: "k", Value: []byte{byte(i)}})
			if err == nil {
				won.Add(1)
			} else if forebay.CodeOf(err) != forebay.CodeConflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d of 32 made the document", won.Load())
	}
}

func TestDocumentsList(t *testing.T) {
	ctx := context.Background()
	e := open(t, sqlite.Config{})
	for i := range 25 {
		put(t, e, engine.Document{Collection: "c", Key: fmt.Sprintf("k%02d", i), Value: []byte{byte(i)}})
		put(t, e, engine.Document{Collection: "d", Key: fmt.Sprintf("k%02d", i)})
	}
	var keys []string
	for after := ""; ; {
		list, err := e.Documents(ctx, "c", after, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		for _, d := range list {
			keys = append(keys, d.Key)
		}
		after = list[len(list)-1].Key
	}
	if len(keys) != 25 || keys[0] != "k00" || keys[24] != "k24" {
		t.Fatal(keys)
	}
	large := bytes.Repeat([]byte("x"), engine.MaxDocumentBytes)
	for i := range 6 {
		put(t, e, engine.Document{Collection: "large", Key: fmt.Sprint(i), Value: large})
	}
	if list, err := e.Documents(ctx, "large", "", 10); err != nil || len(list) != 4 || !bytes.Equal(list[3].Value, large) {
		t.Fatalf("%d large ones at once, %v", len(list), err)
	}
}

func TestDocumentsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		e := open(t, sqlite.Config{})
		for i := range 1000 {
			at := time.Now().Add(time.Minute)
			if i%2 > 0 {
				at = at.Add(time.Hour)
			}
			put(t, e, engine.Document{Collection: "c", Key: fmt.Sprintf("k%03d", i), Expires: at})
		}
		put(t, e, engine.Document{Collection: "c", Key: "kept"})
		time.Sleep(time.Minute - 1)
		old, err := e.Document(ctx, "c", "k000")
		if err != nil {
			t.Fatal(err)
		}
		release := e.Hold() // what comes next is asked at once, whatever the timer has done
		time.Sleep(1)
		asked := make(chan error, 1)
		go func() {
			_, err := e.Document(ctx, "c", "k998")
			asked <- err
		}()
		synctest.Wait()
		release()
		wantCode(t, <-asked, forebay.CodeNotFound)
		if list, err := e.Documents(ctx, "c", "", 1000); err != nil || len(list) != 501 {
			t.Fatalf("%d are listed, %v", len(list), err)
		}
		wantCode(t, e.DeleteDocument(ctx, "c", "k002", engine.AnyRev), forebay.CodeNotFound)
		if d := put(t, e, engine.Document{Collection: "c", Key: "k000"}); d.Rev <= old.Rev {
			t.Fatalf("revision %d after %d", d.Rev, old.Rev)
		}
		time.Sleep(time.Second)
		if n := rows(t, e, "SELECT count(*) FROM doc"); n != 502 {
			t.Fatalf("%d rows are left", n)
		}
		time.Sleep(time.Hour)
		if n := rows(t, e, "SELECT count(*) FROM doc"); n != 2 {
			t.Fatalf("%d rows are left after all have expired", n)
		}
	})
}

// What expired while no process ran leaves after the start.
func TestDocumentsExpireAcrossRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := mustOpen(t, sqlite.Config{Path: path})
		put(t, e, engine.Document{Collection: "c", Key: "k", Expires: time.Now().Add(time.Hour)})
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		e = open(t, sqlite.Config{Path: path})
		time.Sleep(time.Second)
		if n := rows(t, e, "SELECT count(*) FROM doc"); n != 0 {
			t.Fatalf("%d rows are left", n)
		}
	})
}

func TestDocumentBounds(t *testing.T) {
	ctx := context.Background()
	e := open(t, sqlite.Config{})
	for field, d := range map[string]engine.Document{
		"collection": {Key: "k"},
		"key":        {Collection: "c", Key: strings.Repeat("k", engine.MaxDocumentKey+1)},
		"rev":        {Collection: "c", Key: "k", Rev: -2},
		"value":      {Collection: "c", Key: "k", Value: make([]byte, engine.MaxDocumentBytes+1)},
		"expires":    {Collection: "c", Key: "k", Expires: time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		_, err := e.PutDocument(ctx, d)
		if fe, ok := err.(*forebay.Error); !ok || fe.Field != field || fe.Code != forebay.CodeInvalid && field != "value" {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err := e.Document(ctx, "c", "\x00")
	wantCode(t, err, forebay.CodeInvalid)
	for _, limit := range []int{0, -1, engine.MaxDocuments + 1} {
		_, err := e.Documents(ctx, "c", "", limit)
		wantCode(t, err, forebay.CodeInvalid)
	}
	wantCode(t, e.DeleteDocument(ctx, "", "k", 0), forebay.CodeInvalid)
}

// A document that is kept after the answer, also when its caller changes the value.
func TestDocumentValueIsCopied(t *testing.T) {
	e := open(t, sqlite.Config{})
	value := []byte("right")
	put(t, e, engine.Document{Collection: "c", Key: "k", Value: value})
	copy(value, "wrong")
	if d, err := e.Document(context.Background(), "c", "k"); err != nil || string(d.Value) != "right" {
		t.Fatalf("%s, %v", d.Value, err)
	}
}
