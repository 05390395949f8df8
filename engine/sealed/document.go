package sealed

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// documents seals values. The data keys are not among what it shows.
type documents struct {
	e  *Engine
	in engine.Documents
}

func ours(collection string) error {
	if collection == Collection {
		return forebay.Errorf(forebay.CodeInvalid, "sealed", "the collection %s holds data keys and belongs to encryption", Collection)
	}
	return nil
}

func (d *documents) PutDocument(ctx context.Context, one engine.Document) (engine.Document, error) {
	if err := ours(one.Collection); err != nil {
		return engine.Document{}, err
	}
	plain := one.Value
	if d.e.sealer.seals() && engine.CheckDocument(&one) == nil {
		p := place{what: isDocument, queue: one.Collection, id: one.Key}
		if one.Value = d.e.sealer.fit(p, plain, engine.MaxDocumentBytes); one.Value == nil {
			err := forebay.Errorf(forebay.CodeTooLarge, "", "the value has %d bytes and cannot be compressed; with encryption at most %d are allowed",
				len(plain), engine.MaxDocumentBytes-d.e.sealer.room())
			err.Field = "value"
			return engine.Document{}, err
		}
	}
	got, err := d.in.PutDocument(ctx, one)
	if err == nil {
		got.Value = plain
		return got, nil
	}
	if opens := d.open(ctx, &got); opens != nil {
		return got, opens
	}
	return got, err
}

func (d *documents) Document(ctx context.Context, collection, key string) (engine.Document, error) {
	if err := ours(collection); err != nil {
		return engine.Document{}, err
	}
	got, err := d.in.Document(ctx, collection, key)
	if err == nil {
		err = d.open(ctx, &got)
	}
	return got, err
}

func (d *documents) Documents(ctx context.Context, collection, after string, limit int) ([]engine.Document, error) {
	if err := ours(collection); err != nil {
		return nil, err
	}
	all, err := d.in.Documents(ctx, collection, after, limit)
	for i := range all {
		if err == nil {
			err = d.open(ctx, &all[i])
		}
	}
	return all, err
}

func (d *documents) DeleteDocument(ctx context.Context, collection, key string, rev int64) error {
	if err := ours(collection); err != nil {
		return err
	}
	return d.in.DeleteDocument(ctx, collection, key, rev)
}

func (d *documents) open(ctx context.Context, one *engine.Document) error {
	if !isSealed(one.Value) {
		return nil
	}
	plain, err := d.e.sealer.open(ctx, place{what: isDocument, queue: one.Collection, id: one.Key}, one.Value)
	if err != nil {
		return forebay.Errorf(forebay.CodeOf(coded(err)), "sealed", "document %s of %s: %w", one.Key, one.Collection, err)
	}
	one.Value = plain
	return nil
}

// Box seals what is kept in a file beside the store, under its data keys.
type Box struct{ s *sealer }

// Box gives one.
func (e *Engine) Box() *Box { return &Box{e.sealer} }

// Seal seals for a name, with which alone it opens. Where nothing is sealed it gives plain.
func (b *Box) Seal(name string, plain []byte) (sealed []byte, is bool) {
	if !b.s.seals() {
		return plain, false
	}
	return b.s.seal(place{what: isBox, id: name}, plain, 0), true
}

// Open opens; what is not sealed it gives as it is.
func (b *Box) Open(ctx context.Context, name string, sealed []byte) (plain []byte, is bool, err error) {
	if !isSealed(sealed) {
		return sealed, false, nil
	}
	plain, err = b.s.open(ctx, place{what: isBox, id: name}, sealed)
	return plain, true, coded(err)
}
