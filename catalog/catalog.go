// Package catalog keeps what handlers say of themselves: a title, a description, and the
// JSON Schemas of a job's data and of its result. Forms are made of that, flows are checked
// against it, and where a schema says so (schema.Enforce), new jobs are too.
//
// Handlers of this process are known from the start. Those that pull jobs, or that another
// process has, are registered over the API and kept as documents, so that every process
// on the same store knows them within seconds.
//
// It promises that a schema which does not compile is never kept, and that a look at it
// costs no call to the store but one every few seconds. It refuses to say whether a
// handler is alive: it is a catalog, not a heartbeat.
package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/internal/schema"
)

// Bounds.
const (
	MaxEntries = 1000 // that are registered
	maxTitle   = 200
	maxText    = 4 << 10
	maxSchema  = 64 << 10

	collection = "handler"
	staleAfter = 5 * time.Second
	askFor     = 5 * time.Second // of the store, at most
)

// Entry is what one handler says of itself.
type Entry struct {
	Queue       string          `json:"queue"`
	Kind        string          `json:"kind"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`   // JSON Schema of the data of its jobs
	Result      json.RawMessage `json:"result,omitempty"` // JSON Schema of what it gives
	Own         bool            `json:"-"`                // of this process, not registered

	data, result *schema.Schema
}

// Enforced tells whether jobs whose data does not fit are refused.
func (e *Entry) Enforced() bool { return e.data.Enforced() }

// Config of a Catalog. The zero value works.
type Config struct {
	Documents engine.Documents // nil: nothing can be registered
	Own       []Entry          // of the handlers of this process
	Now       func() time.Time // nil: time.Now
}

// Catalog is safe for concurrent use.
type Catalog struct {
	cfg Config

	mu    sync.Mutex
	all   map[key]*Entry // guarded by mu; replaced as a whole
	read  time.Time      // guarded by mu
	asked bool           // guarded by mu: somebody reads
}

type key struct{ queue, kind string }

// New makes a catalog. Every problem of cfg is reported at once.
func New(cfg Config) (*Catalog, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Catalog{cfg: cfg}
	for i := range cfg.Own {
		if err := cfg.Own[i].compile(); err != nil {
			return nil, err
		}
		cfg.Own[i].Own = true
	}
	c.all = c.with(nil)
	return c, nil
}

// compile checks an entry, and makes it usable.
func (e *Entry) compile() (err error) {
	switch {
	case engine.CheckQueue(e.Queue) != nil:
		return engine.CheckQueue(e.Queue)
	case e.Kind == "" || len(e.Kind) > forebay.MaxKindBytes:
		return wrong("kind", "the name has %d bytes; 1 to %d are allowed", len(e.Kind), forebay.MaxKindBytes)
	case len(e.Title) > maxTitle:
		return wrong("title", "title has %d bytes; at most %d are allowed", len(e.Title), maxTitle)
	case len(e.Description) > maxText:
		return wrong("description", "description has %d bytes; at most %d are allowed", len(e.Description), maxText)
	}
	if n := max(len(e.Data), len(e.Result)); n > maxSchema {
		return wrong("data", "a schema of %s has %d bytes; at most %d are allowed", e.Kind, n, maxSchema)
	}
	if e.data, err = schema.Compile(e.Data); err != nil {
		return wrong("data", "the schema of the data of %s: %w", e.Kind, err)
	}
	if e.result, err = schema.Compile(e.Result); err != nil {
		return wrong("result", "the schema of the result of %s: %w", e.Kind, err)
	}
	return nil
}

func wrong(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
	e.Field = field
	return e
}

// with is all that is known: what is registered, and, before that, what this process has.
func (c *Catalog) with(registered []*Entry) map[key]*Entry {
	all := make(map[key]*Entry, len(registered)+len(c.cfg.Own))
	for _, e := range registered {
		all[key{e.Queue, e.Kind}] = e
	}
	for i := range c.cfg.Own {
		e := &c.cfg.Own[i]
		all[key{e.Queue, e.Kind}] = e
	}
	return all
}

// now gives what is known, read again where that is some seconds old. One asks the store;
// others take what there is. A store that cannot be asked changes nothing.
func (c *Catalog) now(ctx context.Context) map[key]*Entry {
	c.mu.Lock()
	all := c.all
	if c.cfg.Documents == nil || c.asked || c.cfg.Now().Sub(c.read) < staleAfter {
		c.mu.Unlock()
		return all
	}
	c.asked = true
	c.mu.Unlock()
	fresh, err := c.load(ctx, all)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.read = false, c.cfg.Now()
	if err == nil {
		c.all = c.with(fresh)
	}
	return c.all
}

// load reads what is registered. What is as it was before is not compiled again.
func (c *Catalog) load(ctx context.Context, old map[key]*Entry) (all []*Entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	for after := ""; len(all) < MaxEntries; {
		docs, err := c.cfg.Documents.Documents(ctx, collection, after, engine.MaxDocuments)
		if err != nil || len(docs) == 0 {
			return all, err
		}
		for _, d := range docs {
			e := &Entry{}
			after = d.Key
			if json.Unmarshal(d.Value, e) != nil { // of a later version, perhaps
				continue
			}
			if o := old[key{e.Queue, e.Kind}]; o != nil && bytes.Equal(o.Data, e.Data) && bytes.Equal(o.Result, e.Result) {
				e.data, e.result = o.data, o.result
			} else if e.compile() != nil {
				continue
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// List gives all entries by queue and kind.
func (c *Catalog) List(ctx context.Context) []*Entry {
	all := c.now(ctx)
	list := make([]*Entry, 0, len(all))
	for _, e := range all {
		list = append(list, e)
	}
	sort.Slice(list, func(i, j int) bool {
		return docKey(list[i].Queue, list[i].Kind) < docKey(list[j].Queue, list[j].Kind)
	})
	return list
}

func docKey(queue, kind string) string { return queue + "/" + kind }

// Put registers a handler, or says anew what it is.
func (c *Catalog) Put(ctx context.Context, e Entry) (*Entry, error) {
	if c.cfg.Documents == nil {
		return nil, forebay.Errorf(forebay.CodeUnsupported, "", "this queue keeps no documents, so handlers cannot be registered here")
	}
	if err := e.compile(); err != nil {
		return nil, err
	}
	known := c.now(ctx)
	if old := known[key{e.Queue, e.Kind}]; old != nil && old.Own {
		return nil, forebay.Errorf(forebay.CodeConflict, "", "%s on the queue %s is a handler of this server; what it says of itself is in its program or settings", e.Kind, e.Queue)
	} else if old == nil && len(known) >= MaxEntries+len(c.cfg.Own) {
		return nil, wrong("name", "there are %d handlers registered, the most that are kept; take one away first", MaxEntries)
	}
	value, err := json.Marshal(e)
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeInternal, "catalog: put", "%w", err)
	}
	_, err = c.cfg.Documents.PutDocument(ctx, engine.Document{Collection: collection, Key: docKey(e.Queue, e.Kind), Value: value, Rev: engine.AnyRev})
	c.forget()
	return &e, err
}

// Drop takes a handler that was registered away.
func (c *Catalog) Drop(ctx context.Context, queue, kind string) error {
	if c.cfg.Documents == nil {
		return forebay.Errorf(forebay.CodeNotFound, "", "no handler is registered for %s on %s", kind, queue)
	}
	err := c.cfg.Documents.DeleteDocument(ctx, collection, docKey(queue, kind), engine.AnyRev)
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		err = forebay.Errorf(forebay.CodeNotFound, "", "no handler is registered for %s on %s", kind, queue)
	}
	c.forget()
	return err
}

// forget makes the next look ask the store.
func (c *Catalog) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = time.Time{}
}

// Data tells what of a job's data does not fit its handler's schema, where some values
// are not known yet (schema.Partly). Nothing: it fits, or nobody has said what fits.
func (c *Catalog) Data(ctx context.Context, queue, kind string, data []byte, unknown []string) []schema.Misfit {
	e := c.now(ctx)[key{queue, kind}]
	if e == nil {
		return nil
	}
	bad, err := e.data.Partly(data, unknown)
	if err != nil {
		return []schema.Misfit{{Text: forebay.TextOf(err)}}
	}
	return bad
}

// tooCostly says that a handler's schema is at fault, not the data that it was to judge.
func tooCostly(kind string, err error) error {
	e := forebay.Errorf(forebay.CodeOf(err), "", "what %s says that it takes cannot be checked: %w", kind, err)
	e.Field, e.Hint = "data", "give the handler a schema that costs less, or leave out \"x-enforce\""
	return e
}

// Result is the schema of what a handler gives; nil: nobody has said.
func (c *Catalog) Result(ctx context.Context, queue, kind string) json.RawMessage {
	if e := c.now(ctx)[key{queue, kind}]; e != nil {
		return e.Result
	}
	return nil
}

// Admit refuses a new job whose data does not fit, where its handler's schema says so.
func (c *Catalog) Admit(ctx context.Context, m *forebay.Message) error {
	e := c.now(ctx)[key{m.Queue, m.Kind}]
	if e == nil || !e.data.Enforced() {
		return nil
	}
	data := m.Payload
	if len(data) == 0 {
		data = []byte("null")
	}
	misfits, err := e.data.Check(data)
	if err != nil {
		return tooCostly(m.Kind, err)
	}
	if len(misfits) == 0 {
		return nil
	}
	first := misfits[0]
	return &Misfits{wrong(strings.Join(append([]string{"data"}, first.Path...), "."), "the data does not fit what %s says that it takes: %s", m.Kind, first.Text), misfits}
}

// Misfits is the error of data that does not fit: it says the first thing that does not, and
// knows all of them.
type Misfits struct {
	error
	All []schema.Misfit
}

func (m *Misfits) Unwrap() error { return m.error }
