package queue

import (
	"context"
	"errors"
	"time"

	"github.com/forebayhq/forebay"
)

// work sweeps and works move tasks until ctx ends, and waits for all of it.
func (s *Service) work(ctx context.Context) error {
	running := map[string]chan struct{}{}
	defer func() {
		for _, ended := range running {
			<-ended
		}
	}()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	told := false
	for {
		if !told {
			if told = s.tellDelays(ctx) == nil; !told && ctx.Err() == nil {
				s.cfg.Logger.Warn("the delays of FIFO queues could not be set; it is tried again")
			}
		}
		if err := s.startMoves(ctx, running); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("move tasks cannot be read", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			continue
		case <-tick.C:
		}
		err := s.sweep(ctx)
		if forebay.CodeOf(err) == forebay.CodeClosed {
			return err
		}
		if err != nil && !errors.Is(err, ctx.Err()) {
			s.cfg.Logger.Warn("messages whose retention is over cannot be removed", "error", err)
		}
	}
}

// startMoves starts the tasks that are not running.
func (s *Service) startMoves(ctx context.Context, running map[string]chan struct{}) error {
	for key, ended := range running {
		select {
		case <-ended:
			delete(running, key)
		default:
		}
	}
	all, err := s.moves(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		key := all[i].key
		if running[key] != nil || !all[i].active() {
			continue
		}
		ended := make(chan struct{})
		running[key] = ended
		go func() {
			defer close(ended)
			s.runMove(ctx, key)
		}()
	}
	return nil
}
