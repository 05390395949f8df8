package main

import (
	"context"

	"github.com/forebayhq/forebay/cmd/forebay/internal/move"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sealed"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// What is moved is opened with the keys of the settings, and sealed where it goes.

// The abilities of a store by names that are none of their methods.
type (
	ledgerOf    = engine.Jobs
	listOf      = engine.JobLister
	deadOf      = engine.DeadLetters
	documentsOf = engine.Documents
	limitsOf    = engine.Limiter
)

// throughSeals is a store with the seals in front of it.
type throughSeals struct {
	engine.Engine
	ledgerOf
	listOf
	deadOf
	documentsOf
	limitsOf
}

// storeOf gives a store with the seals in front of it, if there are any.
func storeOf(bare move.Store, over *sealed.Engine) move.Store {
	if over == nil {
		return bare
	}
	s := throughSeals{Engine: over} // as bare, it can do all of this
	s.ledgerOf, _ = engine.As[engine.Jobs](over)
	s.listOf, _ = engine.As[engine.JobLister](over)
	s.deadOf, _ = engine.As[engine.DeadLetters](over)
	s.documentsOf, _ = engine.As[engine.Documents](over)
	s.limitsOf, _ = engine.As[engine.Limiter](over)
	return s
}

// movable also tells which collections there are.
type movable struct {
	move.Store
	bare *sqlite.Engine
}

func (m movable) Collections(ctx context.Context) ([]string, error) { return m.bare.Collections(ctx) }
