package inbox_test

import (
	"context"
	"sync"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// memory keeps documents as engine.Documents says, where a test wants to see the
// store fail.
type memory struct {
	mu   sync.Mutex
	docs map[[2]string]engine.Document
	fail error
}

var _ engine.Documents = (*memory)(nil)

func (m *memory) PutDocument(_ context.Context, d engine.Document) (engine.Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return engine.Document{}, m.fail
	}
	key := [2]string{d.Collection, d.Key}
	old := m.docs[key]
	if d.Rev != engine.AnyRev && d.Rev != old.Rev {
		return old, forebay.Errorf(forebay.CodeConflict, "memory", "it has another revision")
	}
	d.Rev = old.Rev + 1
	if m.docs == nil {
		m.docs = map[[2]string]engine.Document{}
	}
	m.docs[key] = d
	return d, nil
}

func (m *memory) Document(_ context.Context, collection, key string) (engine.Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return engine.Document{}, m.fail
	}
	d, ok := m.docs[[2]string{collection, key}]
	if !ok {
		return d, forebay.Errorf(forebay.CodeNotFound, "memory", "there is no such document")
	}
	return d, nil
}

func (m *memory) Documents(context.Context, string, string, int) ([]engine.Document, error) {
	return nil, forebay.Errorf(forebay.CodeUnsupported, "memory", "nobody lists here")
}

func (m *memory) DeleteDocument(_ context.Context, collection, key string, _ int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.docs, [2]string{collection, key})
	return nil
}
