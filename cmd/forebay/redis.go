package main

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/engine/route"
	"github.com/forebayhq/forebay/event"
)

// Starting: how long a Redis that does not answer yet is waited for, since after a
// reboot it may load its data while this server starts.
const (
	redisPatience = 10 * time.Second
	redisAgain    = 250 * time.Millisecond
	redisTimeout  = 5 * time.Second // of the questions beside
	redisListed   = 64              // queues for which BullMQ's getWorkers lists this server
)

func redisConfig(s *config.Settings) redis.Config {
	r := &s.Redis
	return redis.Config{
		URL: r.Address(), Cluster: r.Cluster, Prefix: r.Prefix, Name: r.Name, Timeout: r.Timeout, History: int(s.History.MaxRows),
		Metrics: int(r.Metrics), Listed: redisListed,
	}
}

// redisName names the server without its password.
func redisName(r *config.Redis) string {
	u, err := url.Parse(r.Address())
	if err != nil {
		return "Redis"
	}
	return "Redis at " + u.Host + u.Path
}

// openEngines opens what keeps events, and beside it what keeps jobs if that is elsewhere.
func (s *server) openEngines() (engine.Engine, error) {
	open, away := s.openRedis, func() error { return s.redis.Close() }
	switch {
	case s.settings.Postgres.URL != "":
		open, away = s.openPostgres, func() error { return s.pg.Close() }
	case s.settings.Redis.Address() == "":
		return s.openJobs(s.local, s.openShared)
	}
	events, err := s.openShared(s.local)
	if err != nil {
		return nil, err
	}
	var jobs engine.Engine
	if jobs, err = open(); err == nil {
		var all engine.Engine
		if all, err = s.openJobs(jobs, func(jobs engine.Engine) (engine.Engine, error) {
			return route.NewApart(jobs, map[string]engine.Engine{event.Queue: events})
		}); err == nil {
			return all, nil
		}
		err = errors.Join(err, away())
	}
	if s.shared != nil {
		err = errors.Join(err, s.shared.outbox.Close())
	}
	return nil, err
}

// openRedis opens Redis, and gives it with the seals in front of it.
func (s *server) openRedis() (jobs engine.Engine, err error) {
	log := s.log.With("part", "redis")
	ctx, cancel := context.WithTimeout(context.Background(), redisPatience)
	defer cancel()
	for told := false; ; told = true {
		if s.redis, err = redis.Open(ctx, redisConfig(s.settings)); err == nil {
			break
		}
		if forebay.CodeOf(err) != forebay.CodeUnavailable || ctx.Err() != nil {
			return nil, redisError(&s.settings.Redis, err)
		}
		if !told {
			log.Warn("waiting for Redis", "error", err)
		}
		pause(ctx, redisAgain)
	}
	is, err := s.redis.Server(ctx)
	if err != nil {
		return nil, errors.Join(redisError(&s.settings.Redis, err), s.redis.Close())
	}
	log.Info("jobs, schedules and dead letters are on Redis", "server", redisName(&s.settings.Redis), "prefix", s.settings.Redis.Prefix,
		"version", is.Version, "cluster", is.Cluster, "log", is.Log, "memory", is.Used, "maxMemory", is.Most)
	found, err := s.redis.Audit(ctx)
	if err != nil {
		log.Warn("its settings could not be read", "error", err)
	}
	for _, f := range found {
		log.Warn(f.Text, "hint", f.Hint)
	}
	s.tellLeftJobs(ctx, "redis.url (REDIS_URL)")
	if jobs, err = s.seal("Redis", s.redis, false); err != nil {
		return nil, errors.Join(err, s.redis.Close())
	}
	return jobs, nil
}

// redisError tells what a user can do about a Redis that cannot be used.
func redisError(r *config.Redis, err error) error {
	coded := forebay.Errorf(forebay.CodeOf(err), redisName(r), "%w", err)
	switch coded.Code {
	case forebay.CodeUnavailable:
		coded.Hint = "start it, or correct redis.url (REDIS_URL)"
	case forebay.CodeUnauthorized:
		coded.Hint = "correct user and password in redis.url (REDIS_URL); the user needs all commands but those that administer the server"
	case forebay.CodeInvalid, forebay.CodeUnsupported:
		return usage(coded)
	}
	return cannotStart(coded)
}

// tellLeftJobs says that jobs of the time without a setting wait in the data folder.
func (s *server) tellLeftJobs(ctx context.Context, setting string) {
	able, ok := engine.As[engine.JobLister](s.local)
	if !ok {
		return
	}
	page, err := able.Jobs(ctx, engine.JobQuery{Limit: 1, Filter: engine.JobFilter{
		States: []forebay.State{forebay.StateWaiting, forebay.StateDelayed, forebay.StateActive},
	}})
	if err == nil && len(page.Jobs) > 0 {
		s.log.Warn("jobs of the time without "+setting+" wait in the data folder and are not worked now", "file", s.path(queueFile),
			"hint", "start once without "+setting+" and let them end, or bring them over: forebay move")
	}
}

// checkEvents tells whether events can be stored now, whatever Redis does.
func (s *server) checkEvents(ctx context.Context) error {
	if able, ok := engine.As[engine.Checker](s.local); ok {
		return able.Check(ctx)
	}
	return nil
}
