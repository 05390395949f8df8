package catalog_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/catalog"
	"github.com/forebayhq/forebay/engine/sqlite"
)

const strict = `{"type":"object","required":["to"],"properties":{"to":{"type":"string"}},"x-enforce":true}`

func open(t *testing.T, b *broker.Broker, now *time.Time) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(catalog.Config{
		Documents: b, Now: func() time.Time { return *now },
		Own: []catalog.Entry{{Queue: "mail", Kind: "own", Title: "Its own", Data: []byte(`{"type":"object"}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhatIsRegisteredIsKnownToOthersAndRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	e, err := sqlite.Open(sqlite.Config{Path: t.TempDir() + "/q.db"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, now := t.Context(), time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	here, there := open(t, b, &now), open(t, b, &now)
	if n := len(there.List(ctx)); n != 1 {
		t.Fatalf("%d are known before", n)
	}
	bad := &forebay.Message{Queue: "mail", Kind: "welcome", Payload: []byte(`{"to":7}`)}
	if err := here.Admit(ctx, bad); err != nil {
		t.Error("nobody has said what fits:", err)
	}
	if _, err := here.Put(ctx, catalog.Entry{Queue: "mail", Kind: "welcome", Data: []byte(strict), Result: []byte(`{"type":"object"}`)}); err != nil {
		t.Fatal(err)
	}
	err = here.Admit(ctx, bad)
	if forebay.CodeOf(err) != forebay.CodeInvalid || !strings.Contains(err.Error(), "want string") {
		t.Errorf("a number for to: %v", err)
	}
	if err := here.Admit(ctx, &forebay.Message{Queue: "mail", Kind: "welcome"}); err == nil {
		t.Error("no data fits an object")
	}
	if err := there.Admit(ctx, bad); err != nil {
		t.Error("the other has read just now:", err)
	}
	now = now.Add(6 * time.Second)
	if err := there.Admit(ctx, bad); err == nil {
		t.Error("after six seconds the other does not know it")
	}
	if err := there.Admit(ctx, &forebay.Message{Queue: "other", Kind: "welcome", Payload: bad.Payload}); err != nil {
		t.Error("another queue's:", err)
	}
	if m := there.Data(ctx, "mail", "welcome", []byte(`{"to":null}`), []string{"to"}); len(m) > 0 {
		t.Errorf("what is not known is judged: %v", m)
	}
	if string(there.Result(ctx, "mail", "welcome")) != `{"type":"object"}` || there.Result(ctx, "mail", "none") != nil {
		t.Error("the schema of the result is not as it was said")
	}
	const twice = `{"x-enforce":true,"properties":{"x":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`
	_, err = here.Put(ctx, catalog.Entry{Queue: "mail", Kind: "costly", Data: []byte(twice)})
	deep := []byte(strings.Repeat(`{"x":`, 30) + "1" + strings.Repeat("}", 30))
	if err := errors.Join(err, here.Admit(ctx, &forebay.Message{Queue: "mail", Kind: "costly", Payload: deep})); forebay.CodeOf(err) != forebay.CodeTooLarge || !strings.Contains(err.Error(), "what costly says that it takes") {
		t.Errorf("data that takes the schema without end: %v", err)
	}
	if m := here.Data(ctx, "mail", "costly", deep, nil); len(m) != 1 || !strings.Contains(m[0].Text, "steps") || here.Drop(ctx, "mail", "costly") != nil {
		t.Errorf("the same in a flow: %v", m)
	}
	refused(t, here, ctx)
	if err := here.Drop(ctx, "mail", "welcome"); err != nil {
		t.Fatal(err)
	}
	if err := here.Admit(ctx, bad); err != nil || len(here.List(ctx)) != 1 {
		t.Error("it is still known:", err)
	}
	if err := here.Drop(ctx, "mail", "welcome"); forebay.CodeOf(err) != forebay.CodeNotFound {
		t.Error("dropped twice:", err)
	}
}

func refused(t *testing.T, c *catalog.Catalog, ctx context.Context) {
	t.Helper()
	for what, one := range map[string]struct {
		e    catalog.Entry
		code forebay.Code
	}{
		"own":       {catalog.Entry{Queue: "mail", Kind: "own"}, forebay.CodeConflict},
		"no schema": {catalog.Entry{Queue: "mail", Kind: "x", Data: []byte(`{"type":"strung"}`)}, forebay.CodeInvalid},
		"no result": {catalog.Entry{Queue: "mail", Kind: "x", Result: []byte(`7`)}, forebay.CodeInvalid},
		"no queue":  {catalog.Entry{Queue: "ma il", Kind: "x"}, forebay.CodeInvalid},
		"no kind":   {catalog.Entry{Queue: "mail"}, forebay.CodeInvalid},
		"large":     {catalog.Entry{Queue: "mail", Kind: "x", Data: []byte(`{"description":"` + strings.Repeat("x", 64<<10) + `"}`)}, forebay.CodeInvalid},
		"long":      {catalog.Entry{Queue: "mail", Kind: "x", Title: strings.Repeat("x", 201)}, forebay.CodeInvalid},
	} {
		if _, err := c.Put(ctx, one.e); forebay.CodeOf(err) != one.code {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := len(c.List(ctx)); n != 2 {
		t.Errorf("%d are known; two are wanted", n)
	}
}
