package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/ledger"
	"github.com/forebayhq/forebay/engine/sqs"
)

// openJobs opens what jobs are on, over the engine that keeps them, and then what
// stands over both.
func (s *server) openJobs(rows engine.Engine, over func(engine.Engine) (engine.Engine, error)) (engine.Engine, error) {
	urls := s.settings.SQSJobs()
	if len(urls) == 0 {
		return over(rows)
	}
	ctx, cancel := context.WithTimeout(context.Background(), settingsTimeout)
	defer cancel()
	log := s.log.With("part", "jobs over aws sqs")
	// Without a logger it audits nothing: notices want no redrive policy.
	remote, err := sqs.Open(ctx, sqs.Config{Queues: urls, Region: s.settings.SQS.Region, Endpoint: s.settings.SQS.Endpoint})
	if err != nil {
		return nil, usage(err)
	}
	names := slices.Sorted(maps.Keys(urls))
	if s.ledger, err = ledger.New(rows, remote, ledger.Config{Queues: names, Logger: log}); err == nil {
		var all engine.Engine
		if all, err = over(s.ledger); err == nil {
			log.Info("queues of jobs run over SQS; their rows are here, and their workers where these are", "queues", strings.Join(names, ","))
			return all, nil
		}
	}
	return nil, errors.Join(err, remote.Close())
}

// checkJobsQueues tells whether jobs can begin, without asking SQS.
func (s *server) checkJobsQueues(context.Context) error {
	if away := s.ledger.Away(); len(away) > 0 {
		return forebay.Errorf(forebay.CodeUnavailable, "", "SQS is out of reach; jobs of %s wait", strings.Join(away, ", "))
	}
	return nil
}
