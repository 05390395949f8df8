package redis

import (
	"context"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// PutDocument stores a document; see engine.Documents.
func (e *Engine) PutDocument(ctx context.Context, d engine.Document) (engine.Document, error) {
	if err := engine.CheckDocument(&d); err != nil {
		return engine.Document{}, err
	}
	ns, ms := int64(0), int64(0)
	if !d.Expires.IsZero() {
		ns, ms = d.Expires.UnixNano(), e.byServer(max(d.Expires.UnixMilli(), 1))
	}
	answer, err := e.document(ctx, "put", d.Collection, d.Key, d.Rev, ns, ms, string(d.Value))
	if err != nil {
		return engine.Document{}, err
	}
	if answer[0] == "conflict" {
		was := engine.Document{}
		if answer[2] != "" {
			was = readDocument(d.Collection, d.Key, answer[2])
		}
		return was, fail(forebay.CodeConflict, "document %q has another revision than %d", d.Key, d.Rev)
	}
	d.Rev = number(answer[1])
	return d, nil
}

// DeleteDocument drops a document; see engine.Documents.
func (e *Engine) DeleteDocument(ctx context.Context, collection, key string, rev int64) error {
	if err := engine.CheckDocument(&engine.Document{Collection: collection, Key: key, Rev: rev}); err != nil {
		return err
	}
	answer, err := e.document(ctx, "delete", collection, key, rev, int64(0), int64(0), "")
	switch {
	case err != nil:
		return err
	case answer[0] == "none":
		return noDocument(key)
	case answer[0] == "conflict":
		return fail(forebay.CodeConflict, "document %q has another revision than %d", key, rev)
	}
	return nil
}

func noDocument(key string) error {
	return fail(forebay.CodeNotFound, "there is no document %q", key)
}

func (e *Engine) document(ctx context.Context, args ...any) ([]string, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	v, err := e.run(ctx, "putdoc", args...)
	if err != nil {
		return nil, err
	}
	out := make([]string, 3)
	for i, s := range v.out {
		out[i] = text(s)
	}
	return out, nil
}

// readDocument reads what is stored: revision, expiry in ns and in ms, value.
func readDocument(collection, key, s string) engine.Document {
	parts := strings.SplitN(s, "|", 4)
	d := engine.Document{Collection: collection, Key: key}
	if len(parts) != 4 {
		return d
	}
	d.Rev = number(parts[0])
	if ns := number(parts[1]); ns != 0 {
		d.Expires = time.Unix(0, ns)
	}
	if parts[3] != "" {
		d.Value = []byte(parts[3])
	}
	return d
}

// Document gets one; see engine.Documents.
func (e *Engine) Document(ctx context.Context, collection, key string) (engine.Document, error) {
	if err := engine.CheckDocumentName(collection, key); err != nil {
		return engine.Document{}, err
	}
	ds, err := e.documents(ctx, collection, key, 0)
	if err != nil {
		return engine.Document{}, err
	}
	if len(ds) == 0 {
		return engine.Document{}, noDocument(key)
	}
	return ds[0], nil
}

// Documents lists a collection; see engine.Documents.
func (e *Engine) Documents(ctx context.Context, collection, after string, limit int) ([]engine.Document, error) {
	if err := engine.CheckCollection(collection); err != nil {
		return nil, err
	}
	if limit < 1 || limit > engine.MaxDocuments {
		return nil, fail(forebay.CodeInvalid, "a list of %d; 1 to %d are allowed", limit, engine.MaxDocuments)
	}
	return e.documents(ctx, collection, after, limit)
}

func (e *Engine) documents(ctx context.Context, collection, key string, limit int) ([]engine.Document, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	v, err := e.run(ctx, "docs", collection, key, limit)
	if err != nil {
		return nil, err
	}
	var out []engine.Document
	for i := 0; i+1 < len(v.out); i += 2 {
		out = append(out, readDocument(collection, text(v.out[i]), text(v.out[i+1])))
	}
	return out, nil
}
