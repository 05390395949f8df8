package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// turns is a context that ends when it was asked a number of times.
type turns struct {
	context.Context
	left int
}

func (c *turns) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A purge that is cut short hides nothing of what it has not dropped.
func TestPurgeCutShort(t *testing.T) {
	for name, group := range map[string]string{"single": "", "in a group": "g"} {
		t.Run(name, func(t *testing.T) {
			e := open(t, sqlite.Config{})
			for i := range 300 { // a block each
				m := messages(1, fmt.Sprint(i, "-"))
				m[0].Group = group
				send(t, e, m...)
			}
			settle(t, e, forebay.Release, receive(t, e, 300)...)
			dropped, err := e.Purge(&turns{context.Background(), 1}, "q")
			if !errors.Is(err, context.Canceled) || dropped == 0 || dropped == 300 {
				t.Fatal(dropped, err)
			}
			if ds := receive(t, e, 300); len(ds) != 300-int(dropped) {
				t.Fatalf("%d dropped, and %d come", dropped, len(ds))
			}
		})
	}
}

// What is active stays, and stays known.
func TestPurgeActive(t *testing.T) {
	e := open(t, sqlite.Config{})
	send(t, e, messages(3, "m")...)
	ds := receive(t, e, 1)
	if n, err := e.Purge(context.Background(), "q"); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	res := send(t, e, messages(3, "m")...)
	if !res[0].Duplicate || res[1].Duplicate || res[2].Duplicate {
		t.Fatalf("%+v", res)
	}
	settle(t, e, forebay.Release, ds...)
	if ds := receive(t, e, 9); len(ds) != 3 {
		t.Fatal(len(ds))
	}
}
