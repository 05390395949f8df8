package broker

import (
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func TestCheckReceive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r     engine.Receive
		field string
	}{
		"smallest": {engine.Receive{Queue: "a", Max: 1}, ""},
		"largest":  {engine.Receive{Queue: "a", Max: engine.MaxReceive, Wait: engine.MaxWait, Lease: engine.MaxLease}, ""},
		"queue":    {engine.Receive{Max: 1}, "queue"},
		"none":     {engine.Receive{Queue: "a"}, "max"},
		"many":     {engine.Receive{Queue: "a", Max: engine.MaxReceive + 1}, "max"},
		"wait":     {engine.Receive{Queue: "a", Max: 1, Wait: engine.MaxWait + 1}, "wait"},
		"past":     {engine.Receive{Queue: "a", Max: 1, Wait: -1}, "wait"},
		"short":    {engine.Receive{Queue: "a", Max: 1, Lease: engine.MinLease - 1}, "lease"},
		"long":     {engine.Receive{Queue: "a", Max: 1, Lease: engine.MaxLease + 1}, "lease"},
	} {
		err := checkReceive(c.r)
		if got := fieldOf(err); got != c.field {
			t.Errorf("%s: got field %q (%v), want %q", name, got, err, c.field)
		}
	}
}

func fieldOf(err error) string {
	if e, ok := err.(*forebay.Error); ok {
		return e.Field
	}
	return ""
}
