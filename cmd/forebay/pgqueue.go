package main

import (
	"context"
	"errors"
	"net/url"

	"github.com/dustin/go-humanize"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/postgres"
)

func postgresConfig(s *config.Settings) postgres.Config {
	p := &s.Postgres
	return postgres.Config{URL: p.URL, Schema: p.Schema, Timeout: p.Timeout, Conns: int(p.Conns), History: int(s.History.MaxRows)}
}

// postgresName names the server without its password.
func postgresName(p *config.Postgres) string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "PostgreSQL"
	}
	return "PostgreSQL at " + u.Host + u.Path
}

// openPostgres opens PostgreSQL, and gives it with the seals in front of it. Like Redis it is
// waited for.
func (s *server) openPostgres() (jobs engine.Engine, err error) {
	log := s.log.With("part", "postgres")
	ctx, cancel := context.WithTimeout(context.Background(), redisPatience)
	defer cancel()
	for told := false; ; told = true {
		if s.pg, err = postgres.Open(ctx, postgresConfig(s.settings)); err == nil {
			break
		}
		if forebay.CodeOf(err) != forebay.CodeUnavailable || ctx.Err() != nil {
			return nil, postgresError(&s.settings.Postgres, err)
		}
		if !told {
			log.Warn("waiting for PostgreSQL", "error", err)
		}
		pause(ctx, redisAgain)
	}
	is, err := s.pg.Server(ctx)
	if err != nil {
		return nil, errors.Join(postgresError(&s.settings.Postgres, err), s.pg.Close())
	}
	log.Info("jobs, schedules and dead letters are on PostgreSQL", "server", postgresName(&s.settings.Postgres), "schema", is.Schema,
		"version", is.Version, "commit", is.Commit, "bytes", is.Bytes)
	found, err := s.pg.Audit(ctx)
	if err != nil {
		log.Warn("its settings could not be read", "error", err)
	}
	for _, f := range found {
		log.Warn(f.Text, "hint", f.Hint)
	}
	s.tellLeftJobs(ctx, "postgres.url (FOREBAY_POSTGRES_URL)")
	if jobs, err = s.seal("PostgreSQL", s.pg, false); err != nil {
		return nil, errors.Join(err, s.pg.Close())
	}
	return jobs, nil
}

// postgresError tells what a user can do about a PostgreSQL that cannot be used.
func postgresError(p *config.Postgres, err error) error {
	coded := forebay.Errorf(forebay.CodeOf(err), postgresName(p), "%w", err)
	coded.Hint = hintOf(err)
	switch coded.Code {
	case forebay.CodeUnavailable:
		coded.Hint = "start it, or correct postgres.url (FOREBAY_POSTGRES_URL)"
	case forebay.CodeUnauthorized:
		coded.Hint = "correct user, password and database in postgres.url (FOREBAY_POSTGRES_URL); the user needs the right to create the schema"
	case forebay.CodeInvalid, forebay.CodeUnsupported:
		return usage(coded)
	}
	return cannotStart(coded)
}

// postgres looks at the PostgreSQL that keeps jobs, if one does.
func (d *doctor) postgres(ctx context.Context) []finding {
	const name = "postgres"
	p := &d.settings.Postgres
	if p.URL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*redisTimeout)
	defer cancel()
	e, err := postgres.Open(ctx, postgresConfig(d.settings))
	if err != nil {
		err = postgresError(p, err)
		return []finding{fail(name, hintOf(err), err)}
	}
	defer e.Close()
	is, err := e.Server(ctx)
	if err != nil {
		return []finding{fail(name, "", err)}
	}
	all := []finding{ok(name, "%s, version %s, schema %s of %s", postgresName(p), is.Version, is.Schema, humanize.IBytes(uint64(is.Bytes)))}
	found, err := e.Audit(ctx)
	if err != nil {
		return append(all, warn(name, "", "its settings could not be read: %v", err))
	}
	for _, f := range found {
		all = append(all, warn("postgres "+f.Code, f.Hint, "%s", f.Text))
	}
	return all
}
