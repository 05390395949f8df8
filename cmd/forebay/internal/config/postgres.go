package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Postgres settings: where jobs are kept, if not in the data folder.
type Postgres struct {
	URL     string
	Schema  string
	Timeout time.Duration
	Conns   int64
}

func (s *Settings) postgresTable() []*setting {
	v := &s.Postgres
	return []*setting{
		{key: "postgres.url", env: "FOREBAY_POSTGRES_URL", secret: true, value: postgresURL(&v.URL),
			doc: "The PostgreSQL that jobs, schedules and dead letters are kept on, for any number of servers. Empty: the data folder. It may be that of sink.postgres."},
		{key: "postgres.schema", value: schemaName(&v.Schema, "forebay"),
			doc: "The schema that this is in, and nothing else."},
		{key: "postgres.timeout", value: duration(&v.Timeout, 5*time.Second, 100*time.Millisecond, time.Minute),
			doc: "How long one call to it may take, its repeats while a failover lasts included."},
		{key: "postgres.connections", value: number(&v.Conns, 16, 2, 1000),
			doc: "The most connections of this server to it, beside one that listens."},
	}
}

// JobsAway tells whether jobs are kept where other servers may work on them too.
func (s *Settings) JobsAway() bool { return s.Redis.Address() != "" || s.Postgres.URL != "" }

// finishPostgres checks what no single value can show.
func (s *Settings) finishPostgres() Problems {
	if s.Postgres.URL == "" {
		return nil
	}
	one, _ := s.find("postgres.url")
	var problems Problems
	if s.Redis.Address() != "" {
		problems = append(problems, Problem{one.from, one.key, "goes not together with redis.url (REDIS_URL): jobs are in one place"})
	}
	if s.Server.Has(RoleIngest) && !s.Server.Has(RoleWorker) && s.SQS.URL == "" {
		roles, _ := s.find("server.roles")
		problems = append(problems, Problem{roles.from, roles.key, "with ingest but without worker nobody would write the events of this server: they are not on PostgreSQL; add worker, or set sqs.url (AWS_SQS_QUEUE_URL)"})
	}
	return problems
}

func postgresURL(p *string) value {
	return value{
		get:     func() string { return *p },
		allowed: "postgres://[user:password@]host[:port]/database, or nothing",
		set: func(s string) error {
			u, err := url.Parse(s)
			// The text of a wrong address may hold its password: it is not shown.
			if s != "" && (err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql") {
				return fmt.Errorf("is not the address of a PostgreSQL server")
			}
			*p = s
			return nil
		},
	}
}

func schemaName(p *string, def string) value {
	v := text(p, def, 63)
	v.allowed = "1 to 63 of a-z 0-9 _, no digit first"
	set := v.set
	v.set = func(s string) error {
		if s == "" || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || s[0] >= '0' && s[0] <= '9' || strings.HasPrefix(s, "pg_") {
			return fmt.Errorf("%q is no such name", s)
		}
		return set(s)
	}
	return v
}
