package queue

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// States of a move task.
const (
	moveRunning    = "RUNNING"
	moveCompleted  = "COMPLETED"
	moveCancelling = "CANCELLING"
	moveCancelled  = "CANCELLED"
	moveFailed     = "FAILED"
)

// Bounds of move tasks.
const (
	movesKept   = 10  // of one source, ended ones included
	movesActive = 100 // of all sources
)

// moveRecord is what is stored of a move task, so that another process goes on with it.
type moveRecord struct {
	Source  string `json:"source"`       // a name
	To      string `json:"to,omitempty"` // likewise; empty: where each message came from
	Life    string `json:"life"`         // of the source
	Rate    int    `json:"rate,omitempty"`
	Started int64  `json:"started"` // ms
	Status  string `json:"status"`
	Moved   int64  `json:"moved"`
	ToMove  int64  `json:"toMove"`
	Reason  string `json:"reason,omitempty"`
}

func (m *moveRecord) active() bool { return m.Status == moveRunning || m.Status == moveCancelling }

// moveTask is a record and where it is stored.
type moveTask struct {
	key string
	rev int64
	moveRecord
}

// changeMove changes a stored task.
func (s *Service) changeMove(ctx context.Context, key string, f func(*moveTask) error) (*moveTask, error) {
	for range putTries {
		m, err := s.move(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := f(m); err != nil {
			return nil, err
		}
		if err = s.putMove(ctx, m); !errors.Is(err, errConflict) {
			return m, err
		}
	}
	return nil, busyAt(errConflict)
}

func (s *Service) move(ctx context.Context, key string) (*moveTask, error) {
	d, err := s.docs.Document(ctx, moveDocs, key)
	switch forebay.CodeOf(err) {
	case "":
	case forebay.CodeNotFound, forebay.CodeInvalid: // the key came from the caller
		return nil, noTask()
	default:
		return nil, s.failed(ctx, err)
	}
	m := &moveTask{key: key, rev: d.Rev}
	if err := json.Unmarshal(d.Value, &m.moveRecord); err != nil {
		return nil, s.failed(ctx, err)
	}
	return m, nil
}

func (s *Service) putMove(ctx context.Context, m *moveTask) error {
	value, err := json.Marshal(m.moveRecord)
	if err != nil {
		return s.failed(ctx, err)
	}
	_, err = s.docs.PutDocument(ctx, engine.Document{Collection: moveDocs, Key: m.key, Rev: m.rev, Value: value})
	if forebay.CodeOf(err) == forebay.CodeConflict {
		return errConflict
	}
	if err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

// moves reads all tasks, those of one source oldest first.
func (s *Service) moves(ctx context.Context) (all []moveTask, err error) {
	for after := ""; ; {
		docs, err := s.docs.Documents(ctx, moveDocs, after, engine.MaxDocuments)
		if err != nil {
			return nil, s.failed(ctx, err)
		}
		if len(docs) == 0 {
			return all, nil
		}
		for i := range docs {
			after = docs[i].Key
			m := moveTask{key: after, rev: docs[i].Rev}
			if err := json.Unmarshal(docs[i].Value, &m.moveRecord); err != nil {
				s.cfg.Logger.Error("the record of a move task does not parse", "task", after, "error", err)
				continue
			}
			all = append(all, m)
		}
	}
}
