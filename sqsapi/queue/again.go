package queue

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// A dedup id is forgotten after five minutes, also when its message is still there.
// The engine holds a dedup key for as long as its message is stored. So, where it
// calls a message a duplicate of one that is older than five minutes, the message is
// sent again without a key, and what the engine does not know of it is kept here: in
// memory, and in a document that expires, for the next process.

const againDocs = "sqs.again" // by life of the queue and number

// sentAgain is a message that was sent without its key.
type sentAgain struct {
	Key string `json:"key"`
	ID  string `json:"id"`
}

// again are such messages of one queue of the last five minutes, by their key.
// It belongs to the funnel.
type again struct {
	loaded bool
	ids    map[string]string
	order  []sentAgain // as they were sent
}

func (a *again) add(m sentAgain) {
	a.ids[m.Key] = m.ID
	a.order = append(a.order, m)
}

// trim forgets what is older than five minutes.
func (a *again) trim(now time.Time) {
	for len(a.order) > 0 && isOld(a.order[0].ID, now) {
		if first := a.order[0]; a.ids[first.Key] == first.ID {
			delete(a.ids, first.Key)
		}
		a.order = a.order[1:]
	}
}

// sendOnce sends what is not a duplicate of a message in again.
func (s *Service) sendOnce(ctx context.Context, l *live, msgs []forebay.Message, now time.Time) ([]forebay.SendResult, error) {
	if err := s.loadAgain(ctx, l); err != nil {
		return nil, err
	}
	a := &l.again
	a.trim(now)
	if len(a.ids) == 0 {
		results, err := s.engine.Send(ctx, msgs)
		if err != nil {
			err = s.failed(ctx, err)
		}
		return results, err
	}
	results := make([]forebay.SendResult, len(msgs))
	var rest []forebay.Message
	var at []int
	for i := range msgs {
		if id := a.ids[msgs[i].DedupKey]; id != "" {
			results[i] = forebay.SendResult{ID: id, Duplicate: true}
			continue
		}
		rest, at = append(rest, msgs[i]), append(at, i)
	}
	return results, s.sendSome(ctx, rest, at, results)
}

// sendSome sends messages and puts their results where they belong.
func (s *Service) sendSome(ctx context.Context, msgs []forebay.Message, at []int, results []forebay.SendResult) error {
	if len(msgs) == 0 {
		return nil
	}
	some, err := s.engine.Send(ctx, msgs)
	if err != nil {
		return s.failed(ctx, err)
	}
	for n, i := range at {
		results[i] = some[n]
	}
	return nil
}

// sendAgain sends without their keys the messages whose first ones are too old.
func (s *Service) sendAgain(ctx context.Context, l *live, msgs []forebay.Message, results []forebay.SendResult, number int64, now time.Time) error {
	var rest []forebay.Message
	var at []int
	var docs []sentAgain
	for i := range results {
		if !results[i].Duplicate || !isOld(results[i].ID, now) {
			continue
		}
		if id := l.again.ids[msgs[i].DedupKey]; id != "" { // by an earlier one of these
			results[i].ID = id
			continue
		}
		m := msgs[i]
		id, _ := splitID(m.ID)
		m.ID = numbered(id, number)
		number++
		docs = append(docs, sentAgain{m.DedupKey, m.ID})
		l.again.add(docs[len(docs)-1])
		m.DedupKey = ""
		rest, at = append(rest, m), append(at, i)
	}
	if len(rest) == 0 {
		return nil
	}
	err := s.keepAgain(ctx, l, docs, now)
	if err == nil {
		err = s.sendSome(ctx, rest, at, results)
	}
	if err != nil { // whether they were stored, the next call finds out
		l.again = again{}
	}
	return err
}

func isOld(id string, now time.Time) bool {
	messageID, _ := splitID(id)
	at, ok := stamped(messageID)
	return ok && now.Sub(at) >= dedupWindow
}

// keepAgain stores what will be sent. It comes first: a message that was stored and is
// not known would come twice. One that is known and was not stored is found out by
// loadAgain.
func (s *Service) keepAgain(ctx context.Context, l *live, sent []sentAgain, now time.Time) error {
	value, err := json.Marshal(sent)
	if err != nil {
		return s.failed(ctx, err)
	}
	_, number := splitID(sent[0].ID)
	_, err = s.docs.PutDocument(ctx, engine.Document{Collection: againDocs, Key: l.life + "/" + number, Rev: engine.AnyRev, Value: value, Expires: now.Add(dedupWindow)})
	if err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

// loadAgain reads what a former process, or a call that failed, has left.
func (s *Service) loadAgain(ctx context.Context, l *live) error {
	if l.again.loaded {
		return nil
	}
	a := again{loaded: true, ids: map[string]string{}}
	for after := l.life + "/"; ; {
		docs, err := s.docs.Documents(ctx, againDocs, after, engine.MaxDocuments)
		if err != nil {
			return s.failed(ctx, err)
		}
		for _, d := range docs {
			after = d.Key
			if !strings.HasPrefix(d.Key, l.life+"/") {
				docs = nil
				break
			}
			if err := s.addStored(ctx, d.Value, &a); err != nil {
				return err
			}
		}
		if len(docs) == 0 {
			l.again = a
			return nil
		}
	}
}

// addStored adds those of a document that were really stored.
func (s *Service) addStored(ctx context.Context, value []byte, a *again) error {
	var sent []sentAgain
	if err := json.Unmarshal(value, &sent); err != nil {
		return s.failed(ctx, err)
	}
	locate, can := engine.As[engine.Locator](s.engine)
	for _, m := range sent {
		if can {
			l, err := locate.Locate(ctx, m.ID)
			if err != nil {
				return s.failed(ctx, err)
			}
			if l.Where == engine.WhereUnknown {
				continue
			}
		}
		a.add(m)
	}
	return nil
}
