package api

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
)

const (
	deadCollection = "dead_action"
	deadKept       = 30 * 24 * time.Hour
	deadListed     = 200
	deadTries      = 20
	maxDeadErrors  = 100

	codeMoved forebay.Code = "moved" // between our own functions only: read it again
)

// deadData is the data of the job.
type deadData struct {
	Action string `json:"action"`
}

// deadState is an action as it is stored. Its job saves it before each step, with what
// the step is about to do, so that whoever goes on after a crash knows what was done.
type deadState struct {
	DeadWork
	Before  int64        `json:"before"`            // only smaller numbers are meant
	After   int64        `json:"after"`             // up to here all was done, or failed
	Pending []int64      `json:"pending,omitempty"` // what the step is about
	Trial   []canaryItem `json:"trial,omitempty"`   // the canary's that have no verdict

	rev int64
}

type canaryItem struct {
	Seq int64  `json:"seq"`
	ID  string `json:"id"`
	Job bool   `json:"job,omitempty"`
}

func loadDead(ctx context.Context, b *broker.Broker, id string) (*deadState, error) {
	d, err := b.Document(ctx, deadCollection, id)
	if forebay.CodeOf(err) == forebay.CodeNotFound || forebay.CodeOf(err) == forebay.CodeInvalid {
		return nil, forebay.Errorf(forebay.CodeNotFound, "", "there is no action %q on dead letters", id)
	}
	if err != nil {
		return nil, err
	}
	return readDead(&d)
}

func readDead(d *engine.Document) (*deadState, error) {
	s := &deadState{rev: d.Rev}
	if err := json.Unmarshal(d.Value, s); err != nil {
		return nil, forebay.Errorf(forebay.CodeDamaged, "api: dead letters", "the action %s: %w", d.Key, err)
	}
	return s, nil
}

// save stores it; codeMoved: somebody else has stored it since it was read.
func (s *deadState) save(ctx context.Context, b *broker.Broker) error {
	value, err := json.Marshal(s)
	if err != nil {
		return err
	}
	d, err := b.PutDocument(ctx, engine.Document{
		Collection: deadCollection, Key: s.ID, Rev: s.rev, Value: value, Expires: s.StartedAt.Add(deadKept),
	})
	if forebay.CodeOf(err) == forebay.CodeConflict {
		return forebay.Errorf(codeMoved, "", "the action was changed meanwhile")
	}
	if err == nil {
		s.rev = d.Rev
	}
	return err
}

// deadWorkOf is an action as it is shown: one whose job has ended without it is
// interrupted.
func (a *API) deadWorkOf(ctx context.Context, s *deadState) DeadWork {
	v := s.DeadWork
	if v.State != DeadRunning {
		return v
	}
	j, err := a.cfg.Broker.Job(ctx, v.JobID)
	if err == nil && j.State.Final() || forebay.CodeOf(err) == forebay.CodeNotFound {
		v.State = DeadInterrupted
	}
	return v
}

func (a *API) deadWorks(ctx context.Context) (DeadWorkList, error) {
	list := DeadWorkList{Items: []DeadWork{}}
	after := ""
	for {
		docs, err := a.cfg.Broker.Documents(ctx, deadCollection, after, engine.MaxDocuments)
		if err != nil || len(docs) == 0 {
			slices.Reverse(list.Items) // ids grow with time
			list.Items = list.Items[:min(deadListed, len(list.Items))]
			return list, err
		}
		for i := range docs {
			s, err := readDead(&docs[i])
			if err != nil {
				return list, err
			}
			if s.held(ctx) {
				list.Items = append(list.Items, a.deadWorkOf(ctx, s))
			}
		}
		after = docs[len(docs)-1].Key
	}
}
