package api

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// startDead begins an action. What dies from now on is not meant, or a replay of what
// fails again would never end.
func (a *API) startDead(ctx context.Context, in DeadAction) (DeadWork, error) {
	q, err := in.check()
	if err == nil {
		in.Queue, err = a.oneQueue(ctx, in.Queue)
		q.Queue = in.Queue
	}
	if err == nil {
		err = a.knownQueue(ctx, in.Queue)
	}
	if err == nil && in.Into != "" {
		err = mustHold(ctx, in.Into)
	}
	if err != nil {
		return DeadWork{}, err
	}
	newest, err := a.cfg.Broker.Dead(ctx, engine.DeadQuery{Limit: 1})
	if err != nil {
		return DeadWork{}, err
	}
	if len(newest) > 0 {
		q.Before = newest[0].Seq + 1
	}
	s := &deadState{DeadWork: DeadWork{
		Action: in.Action, Filter: in.DeadFilter, Reason: in.Reason, Rate: in.Rate, Into: in.Into, State: DeadRunning, By: caller(ctx), StartedAt: a.cfg.Now(),
	}, Before: q.Before}
	if len(newest) > 0 {
		if s.Total, s.More, err = a.countDead(ctx, q); err != nil {
			return DeadWork{}, err
		}
	}
	if in.DryRun {
		return a.dryDead(ctx, s, q)
	}
	if in.Canary != nil {
		s.Canary = &CanaryState{Canary: *in.Canary}
		if s.Canary.Timeout == 0 {
			s.Canary.Timeout = Duration(canaryTimeout)
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return DeadWork{}, forebay.Errorf(forebay.CodeInternal, "api: make an id", "%w", err)
	}
	s.ID = id.String()
	if err := a.beginDead(ctx, s); err != nil {
		return DeadWork{}, err
	}
	a.cfg.Logger.Info("api: dead letters: "+in.Action, "action", s.ID, "filter", in.DeadFilter, "meant", s.Total, "reason", in.Reason, "by", caller(ctx))
	return s.DeadWork, nil
}

func (in *DeadAction) check() (engine.DeadQuery, error) {
	q, err := in.engine(0, 0)
	switch {
	case err != nil:
		return q, err
	case in.All != (in.DeadFilter == DeadFilter{}):
		return q, wrong("all", "either a filter says which dead letters are meant, or all: true says that all are")
	case in.Action == "discard" && in.Reason == "":
		return q, wrong("reason", "a discard needs a reason; it is in the history")
	case in.Action == "discard" && in.Canary != nil:
		return q, wrong("canary", "a canary is for a replay; what is discarded cannot be had again")
	case in.Action == "discard" && in.Into != "":
		return q, wrong("into", "into is for a replay")
	case in.Into != "":
		return q, engine.CheckQueue(in.Into)
	}
	return q, nil
}

// countDead counts what is meant, up to a bound.
func (a *API) countDead(ctx context.Context, q engine.DeadQuery) (n int, more bool, err error) {
	q.Limit = engine.MaxJobs
	for after := int64(0); n < maxCounted; {
		seqs, err := a.cfg.Broker.DeadSeqs(ctx, q, after)
		if err != nil || len(seqs) == 0 {
			return n, false, err
		}
		n, after = n+len(seqs), seqs[len(seqs)-1]
	}
	return n, true, nil
}

func (a *API) dryDead(ctx context.Context, s *deadState, q engine.DeadQuery) (DeadWork, error) {
	q.Limit = maxSample
	letters, err := a.cfg.Broker.Dead(ctx, q)
	v := s.DeadWork
	v.State, v.Matched = DeadCompleted, &s.Total
	for i := range letters {
		v.Sample = append(v.Sample, deadOf(&letters[i], false))
	}
	return v, err
}

// beginDead stores an action that is to run, and sends the job that does it. A crash
// between the two leaves an action that is interrupted, and can be resumed.
func (a *API) beginDead(ctx context.Context, s *deadState) error {
	id, err := uuid.NewV7()
	if err != nil {
		return forebay.Errorf(forebay.CodeInternal, "api: make an id", "%w", err)
	}
	s.JobID = id.String()
	s.StreamURL = jobPath + url.PathEscape(s.JobID) + streamSuffix
	if err := s.save(ctx, a.cfg.Broker); err != nil {
		return err
	}
	data, err := json.Marshal(deadData{s.ID})
	if err != nil {
		return err
	}
	results, err := a.cfg.Broker.Send(ctx, []forebay.Message{{
		ID: s.JobID, Queue: BulkQueue, Kind: DeadKind, Payload: data, Group: "dead/" + s.ID, Job: &forebay.JobOptions{Tags: []string{"dead", s.Action}},
	}})
	if err == nil {
		err = results[0].Err
	}
	return err
}
