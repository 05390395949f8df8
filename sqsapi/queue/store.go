package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Collections of documents.
const (
	queueDocs = "sqs.queue" // by name
	moveDocs  = "sqs.move"  // by source and start
	otherDocs = "sqs"
)

// record is what is stored of a queue.
type record struct {
	Life       string            `json:"life"` // differs when a name is used again; binds receipt handles and dedup ids
	Created    int64             `json:"created"`
	Modified   int64             `json:"modified"`
	Attributes map[string]string `json:"attributes,omitempty"` // those that were set
	Tags       map[string]string `json:"tags,omitempty"`
	Purged     int64             `json:"purged,omitempty"`  // ms, the last time
	Since      int64             `json:"since,omitempty"`   // ns; what the engine took before is dropped when it is met
	Found      bool              `json:"found,omitempty"`   // the engine had it, and nobody has created it
	Deleted    int64             `json:"deleted,omitempty"` // ms; 0: it is there
	Unused     bool              `json:"unused,omitempty"`  // deleted, and the engine never had it: nothing has to be remembered
}

// queue is a queue as it was read. It is not changed; a change makes another.
type queue struct {
	name string
	record
	settings
	rev  int64
	read time.Time
	live *live
}

// believed is how long what was read of a queue is held for true. Another process on
// the same engine may have changed it.
const believed = 5 * time.Second

// find gives a queue by its URL or its name.
func (s *Service) find(ctx context.Context, url string) (*queue, error) {
	if url == "" {
		return nil, missing("QueueUrl")
	}
	return s.byName(ctx, nameOf(url))
}

func (s *Service) byName(ctx context.Context, name string) (*queue, error) {
	s.mu.Lock()
	q := s.queues[name]
	s.mu.Unlock()
	if q != nil && s.cfg.Now().Sub(q.read) < believed {
		return q, nil
	}
	if checkName(name) != nil {
		return nil, noQueue()
	}
	q, err := s.load(ctx, name)
	if err != nil {
		return nil, err
	}
	if q == nil || q.Deleted != 0 {
		return nil, noQueue()
	}
	return q, nil
}

// load reads a queue; nil: there is none. One that the engine has and nobody has
// created is created by that.
func (s *Service) load(ctx context.Context, name string) (*queue, error) {
	q, err := s.loadOnce(ctx, name)
	if errors.Is(err, errConflict) { // somebody else created it at the same time
		q, err = s.loadOnce(ctx, name)
	}
	if err == nil {
		err = s.tellDelay(ctx, q)
	}
	return q, busyAt(err)
}

// busyAt makes an answer of a conflict that did not go away.
func busyAt(err error) error {
	if errors.Is(err, errConflict) {
		return fault("ServiceUnavailable", "Others change the same thing at the same time. Try again.")
	}
	return err
}

func (s *Service) loadOnce(ctx context.Context, name string) (*queue, error) {
	d, err := s.docs.Document(ctx, queueDocs, name)
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		s.forget(name)
		known, err := s.engineHas(ctx, name)
		if err != nil || !known {
			return nil, err
		}
		found := s.fresh(nil, nil)
		found.Found = true
		return s.put(ctx, name, found, 0)
	}
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	return s.keep(name, d)
}

func (s *Service) engineHas(ctx context.Context, name string) (bool, error) {
	all, err := s.engine.Stats(ctx)
	if err != nil {
		return false, s.failed(ctx, err)
	}
	for i := range all {
		if all[i].Queue == name {
			return true, nil
		}
	}
	return false, nil
}

func (s *Service) fresh(attributes, tags map[string]string) record {
	now := s.cfg.Now().Unix()
	return record{Life: rand.Text()[:13], Created: now, Modified: now, Attributes: attributes, Tags: tags}
}

// keep remembers a queue as it was read.
func (s *Service) keep(name string, d engine.Document) (*queue, error) {
	q := &queue{name: name, rev: d.Rev, read: s.cfg.Now()}
	if err := json.Unmarshal(d.Value, &q.record); err != nil {
		s.cfg.Logger.Error("the record of an SQS queue does not parse", "queue", name, "error", err)
		return nil, internal()
	}
	q.settings = parseSettings(isFifo(name), s.whole(isFifo(name), q.Attributes))
	if q.Found && q.Attributes["MessageRetentionPeriod"] == "" {
		q.retention = math.MaxInt64 // what others have sent leaves by no default of ours
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.queues[name]
	if old != nil && (q.Deleted != 0 || old.Life != q.Life) && old.rev < q.rev {
		old.live.end()
	}
	if q.Deleted != 0 {
		delete(s.queues, name)
		return q, nil
	}
	if old != nil && old.rev > q.rev {
		return old, nil
	}
	if old != nil && old.Life == q.Life {
		q.live = old.live
	} else {
		q.live = s.newLive(q.Life)
	}
	s.queues[name] = q
	return q, nil
}

func (s *Service) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.queues, name)
}

var errConflict = errors.New("the record was changed meanwhile")

// put stores a record over the one with a revision, 0 for none; errConflict: it has
// another.
func (s *Service) put(ctx context.Context, name string, r record, rev int64) (*queue, error) {
	value, err := json.Marshal(r)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	d := engine.Document{Collection: queueDocs, Key: name, Rev: rev, Value: value}
	if r.Unused {
		d.Expires = s.cfg.Now().Add(restAfterDelete)
	}
	stored, err := s.docs.PutDocument(ctx, d)
	switch forebay.CodeOf(err) {
	case "":
		d.Rev = stored.Rev
		return s.keep(name, d)
	case forebay.CodeConflict:
		return nil, errConflict
	case forebay.CodeTooLarge:
		return nil, fault("OverLimit", "The attributes and tags of the queue are too large.")
	}
	return nil, s.failed(ctx, err)
}

const putTries = 10

// change changes the record of a queue that is there.
func (s *Service) change(ctx context.Context, name string, f func(q *queue, r *record) error) (*queue, error) {
	for range putTries {
		q, err := s.load(ctx, name)
		if err != nil {
			return nil, err
		}
		if q == nil || q.Deleted != 0 {
			return nil, noQueue()
		}
		r := q.record
		if err := f(q, &r); err != nil {
			return nil, s.failed(ctx, err)
		}
		if q, err = s.put(ctx, name, r, q.rev); errors.Is(err, errConflict) {
			continue
		}
		if err == nil {
			err = s.tellDelay(ctx, q)
		}
		return q, err
	}
	return nil, busyAt(errConflict)
}

func internal() *Fault { return fault("InternalFailure", "An internal error has occurred.") }

// failed makes an answer of an engine's error. An ended context is passed on.
func (s *Service) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var f *Fault
	if errors.As(err, &f) || errors.Is(err, errConflict) {
		return err
	}
	switch forebay.CodeOf(err) {
	case forebay.CodeFull, forebay.CodeUnavailable, forebay.CodeClosed, forebay.CodeLimited:
		return fault("ServiceUnavailable", "%s", forebay.TextOf(err))
	case forebay.CodeInvalid, forebay.CodeTooLarge:
		return invalidValue("%s", forebay.TextOf(err))
	case forebay.CodeUnsupported:
		return fault("UnsupportedOperation", "%s", forebay.TextOf(err))
	}
	s.cfg.Logger.Error("the engine of an SQS queue failed", "error", err)
	return internal()
}

// secret gives the key that signs receipt handles. It is stored, so that handles
// outlive the process.
func (s *Service) secret(ctx context.Context) ([]byte, error) {
	var key [32]byte
	rand.Read(key[:])
	d := engine.Document{Collection: otherDocs, Key: "receipts", Value: []byte(hex.EncodeToString(key[:]))}
	stored, err := s.docs.PutDocument(ctx, d)
	if forebay.CodeOf(err) == forebay.CodeConflict {
		err = nil
		d = stored
	}
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(string(d.Value))
}
