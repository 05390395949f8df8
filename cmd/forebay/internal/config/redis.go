package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Redis settings: where jobs are kept, if not in the data folder.
type Redis struct {
	URL      string
	Host     string
	Port     int64
	Password string
	Cluster  bool
	Prefix   string
	Name     string
	Timeout  time.Duration
	Metrics  int64
}

const defaultRedisPort = 6379

func (s *Settings) redisTable() []*setting {
	v := &s.Redis
	return []*setting{
		{key: "redis.url", env: "REDIS_URL", secret: true, value: redisURL(&v.URL),
			doc: "The Redis that jobs, schedules and dead letters are kept on, as BullMQ lays them out, for any number of servers. Empty: the data folder."},
		{key: "redis.host", env: "REDIS_HOST", value: text(&v.Host, "", 256),
			doc: "Or its host alone; redis.url goes before it."},
		{key: "redis.port", env: "REDIS_PORT", value: number(&v.Port, defaultRedisPort, 1, 65535),
			doc: "The port of redis.host."},
		{key: "redis.password", env: "REDIS_PASSWORD", secret: true, value: text(&v.Password, "", 1024),
			doc: "The password at redis.host. Empty: none is asked for."},
		{key: "redis.cluster", value: flag(&v.Cluster, false),
			doc: "The address is of a node of a Redis Cluster. The prefix gets a hash tag ({bull}) unless it has one."},
		{key: "redis.prefix", value: redisPrefix(&v.Prefix, "bull"),
			doc: "How all keys begin: the prefix of the BullMQ clients that share the queues."},
		{key: "redis.name", value: text(&v.Name, "forebay", 64),
			doc: "What BullMQ shows as the worker of a job that this server works."},
		{key: "redis.timeout", value: duration(&v.Timeout, 5*time.Second, 100*time.Millisecond, time.Minute),
			doc: "How long one call to Redis may take, its repeats while a failover lasts included."},
		{key: "redis.metrics", value: number(&v.Metrics, 0, 0, 100_000),
			doc: "Minutes of BullMQ's own metrics (getMetrics) to keep for each queue. 0: only where a Node worker has them on."},
	}
}

// Address is where Redis is, with its password; empty: it is not used.
func (r *Redis) Address() string {
	if r.URL != "" || r.Host == "" {
		return r.URL
	}
	u := url.URL{Scheme: "redis", Host: net.JoinHostPort(r.Host, strconv.FormatInt(cmp.Or(r.Port, defaultRedisPort), 10)), Path: "/0"}
	if r.Password != "" {
		u.User = url.UserPassword("", r.Password)
	}
	return u.String()
}

// finishRedis checks what no single value can show.
func (s *Settings) finishRedis() Problems {
	var problems Problems
	r := &s.Redis
	if s.Server.Has(RoleIngest) && !s.Server.Has(RoleWorker) && s.SQS.URL == "" && r.Address() != "" {
		one, _ := s.find("server.roles")
		problems = append(problems, Problem{one.from, one.key, "with ingest but without worker nobody would write the events of this server: they are not on Redis; add worker, or set sqs.url (AWS_SQS_QUEUE_URL)"})
	}
	for key, given := range map[string]bool{"redis.port": r.Port != defaultRedisPort, "redis.password": r.Password != ""} {
		if one, _ := s.find(key); given && r.Host == "" && r.URL == "" {
			problems = append(problems, Problem{one.from, key, "has no meaning without redis.host (REDIS_HOST) or redis.url (REDIS_URL)"})
		}
	}
	return problems
}

func redisURL(p *string) value {
	return value{
		get:     func() string { return *p },
		allowed: "redis://[user:password@]host[:port][/number], rediss:// for TLS, unix://path, or nothing",
		set: func(s string) error {
			u, err := url.Parse(s)
			// The text of a wrong address may hold its password: it is not shown.
			if s != "" && (err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix") {
				return fmt.Errorf("is not the address of a Redis server")
			}
			*p = s
			return nil
		},
	}
}

func redisPrefix(p *string, def string) value {
	v := text(p, def, 64)
	v.allowed = "1 to 64 bytes without a colon"
	set := v.set
	v.set = func(s string) error {
		if s == "" || strings.Contains(s, ":") {
			return fmt.Errorf("%q is empty or has a colon", s)
		}
		return set(s)
	}
	return v
}
