//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/forebayhq/forebay/internal/pgtest"
	"github.com/forebayhq/forebay/internal/redistest"
)

// stand is all processes of one engine, and what can be done to them.
type stand struct {
	engine  string
	dir     string
	nodes   []*node // the first has all roles
	pg      *pgtest.Server
	table   string // the URL of the database, past the network
	redis   *redistest.Server
	cloud   *node               // speaks SQS
	nets    map[string]*network // by what they lead to
	disk    *disk               // of the first node; nil: it cannot be filled
	clock   *clock              // nil: it cannot be moved
	closing []func()
}

// engines that a soak goes over.
var engines = []string{"sqlite", "redis", "postgres", "sqs"}

func newStand(ctx context.Context, cfg *config, engine, target string) (*stand, error) {
	s := &stand{engine: engine, dir: filepath.Join(cfg.dir, engine), nets: map[string]*network{}}
	if err := s.build(ctx, cfg, target); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stand) build(ctx context.Context, cfg *config, target string) (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if cfg.clock {
		if s.clock, err = newClock(s.dir); err != nil {
			return err
		}
	}
	database, err := s.postgres(ctx)
	if err != nil {
		return err
	}
	settings := append(cfg.settings(s.engine), handlerSettings(target, cfg.self)...)
	shared := []string{"DATABASE_URL=" + database}
	switch s.engine {
	case "redis":
		err = s.withRedis(ctx, &shared)
	case "postgres":
		shared = append(shared, "FOREBAY_POSTGRES_URL="+database)
	case "sqs":
		var more []string
		more, err = s.withSQS(ctx, cfg, &shared)
		settings = append(settings, more...)
	}
	if err != nil {
		return err
	}
	roles := []string{"ingest,api,worker,console", "api,worker"}
	switch s.engine {
	case "sqlite":
		roles = roles[:1]
	case "sqs":
		roles[1] = "ingest,api,worker"
	}
	for i, roles := range roles {
		if i > 0 && s.engine == "sqs" {
			settings = cfg.settings(s.engine) // the ledger of the jobs is the first node's
		}
		n, err := s.node(cfg, fmt.Sprint("node", i), roles, shared, settings)
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, n)
	}
	if s.disk, err = newDisk(s.dir, s.nodes[0].data); err != nil {
		return err
	}
	for _, n := range s.nodes {
		if err := errors.Join(n.start(ctx), n.await(ctx, "/readyz", cfg.patience)); err != nil {
			return err
		}
	}
	return s.poison(ctx)
}

func (s *stand) node(cfg *config, name, roles string, env, settings []string) (*node, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	n := &node{
		name: name, binary: cfg.binary, addr: addr, sqs: "off", roles: roles, env: env,
		data: filepath.Join(s.dir, name), log: filepath.Join(s.dir, name+".log"), far: s.engine != "sqlite",
	}
	if s.clock != nil {
		n.env = append([]string{clockVariable + "=" + s.clock.file.Name()}, n.env...)
	}
	for _, one := range settings {
		n.args = append(n.args, "--set", one)
	}
	s.closing = append(s.closing, n.kill)
	return n, os.MkdirAll(n.data, 0o700)
}

// through puts a network before an address.
func (s *stand) through(name, target string) (string, error) {
	n, err := startNetwork(target)
	if err != nil {
		return "", err
	}
	s.nets[name] = n
	s.closing = append(s.closing, n.close)
	return n.addr(), nil
}

func (s *stand) postgres(ctx context.Context) (string, error) {
	pg, err := pgtest.New(ctx, pgtest.Config{})
	if err != nil {
		return "", err
	}
	s.pg = pg
	s.closing = append(s.closing, func() { _ = pg.Close() })
	if s.table, err = pg.Create(ctx); err != nil {
		return "", err
	}
	u, err := url.Parse(s.table)
	if err != nil {
		return "", err
	}
	u.Host, err = s.through("postgres", u.Host)
	return u.String(), err
}

func (s *stand) withRedis(ctx context.Context, env *[]string) error {
	dir := filepath.Join(s.dir, "redis")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	s.redis = redistest.New(dir, redistest.Config{Settings: map[string]string{"appendonly": "yes", "appendfsync": "always"}})
	if err := s.redis.Start(ctx); err != nil {
		return err
	}
	s.closing = append(s.closing, s.redis.Kill)
	addr, err := s.through("redis", s.redis.Addr())
	*env = append(*env, "REDIS_URL=redis://"+addr+"/0")
	return err
}

// sqsQueues run over SQS: queues of jobs, and the one of events.
var sqsQueues = []string{"work", "grouped", "limited"}

func (s *stand) withSQS(ctx context.Context, cfg *config, env *[]string) (settings []string, err error) {
	if s.cloud, err = s.node(cfg, "cloud", "ingest,api,worker,console", nil, nil); err != nil {
		return nil, err
	}
	if s.cloud.sqs, err = freeAddress(); err != nil {
		return nil, err
	}
	s.cloud.args = []string{
		"--set", `sqsQueues.events.attributes=["FifoQueue=true","VisibilityTimeout=10","DeduplicationScope=messageGroup","FifoThroughputLimit=perMessageGroupId"]`,
	}
	for _, q := range sqsQueues {
		s.cloud.args = append(s.cloud.args, "--set", "sqsQueues."+q+`.attributes=["VisibilityTimeout=10"]`)
	}
	if err := s.cloud.start(ctx); err != nil {
		return nil, err
	}
	addr, err := s.through("sqs", s.cloud.sqs)
	if err != nil {
		return nil, err
	}
	queue := "http://" + addr + "/000000000000/"
	*env = append(*env, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_ENDPOINT_URL_SQS=http://"+addr, "AWS_SQS_QUEUE_URL="+queue+"events.fifo")
	for _, q := range sqsQueues {
		settings = append(settings, "queues."+q+".sqs="+queue+q)
	}
	return settings, nil
}

// handlerSettings make this process the handler of all kinds that are pushed.
func handlerSettings(target, self string) []string {
	var all []string
	for kind, queue := range map[string]string{"work": "work", "grouped": "grouped", "limited": "limited", "step": "steps", "undo": "steps"} {
		all = append(all, "handlers."+kind+".queue="+queue, "handlers."+kind+".url="+target)
	}
	command, _ := json.Marshal([]string{self, "handler", target}) // texts can always be written
	return append(all, "handlers.program.queue=programs", "handlers.program.command="+string(command))
}

// settings of the servers: short leases and backoffs, so that much happens in a round.
func (cfg *config) settings(engine string) []string {
	all := []string{
		"webhooks.private=true", "server.grace=100ms", "server.drain=3s", "sink.batchAge=100ms", "data.reserve=1MiB", "history.maxBytes=128MiB",
		"queues.events.lease=10s", "queues.default.lease=10s", "queues.default.backoff=50ms", "queues.default.backoffMax=500ms",
	}
	for _, q := range []string{"work", "grouped", "limited", "steps", "programs", "flows", "flows-advance"} {
		all = append(all, "queues."+q+".lease=10s", "queues."+q+".backoff=50ms", "queues."+q+".backoffMax=500ms", "queues."+q+".deliveries=1000")
	}
	return append(all, "queues.programs.concurrency=2", "queues.work.concurrency=16", "queues.grouped.concurrency=16", "queues.limited.concurrency=16")
}

// poison makes the table refuse some events.
func (s *stand) poison(ctx context.Context) error {
	for tries := 0; ; tries++ { // the table is made by the first that writes
		err := s.query(ctx, `ALTER TABLE events ADD CONSTRAINT soak CHECK (event_type <> 'poison')`, nil)
		if err == nil || tries == 60 || !rest(ctx, 500*time.Millisecond) {
			return err
		}
	}
}

// pathOf is the address of something on the first node.
func (s *stand) pathOf(path string, parts ...any) string {
	escaped := make([]any, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(fmt.Sprint(p))
	}
	return s.nodes[0].url() + fmt.Sprintf(path, escaped...)
}

// limits tells a queue its limits.
func (s *stand) limits(ctx context.Context) error {
	for queue, l := range limitOf {
		body := map[string]any{"active": l.Active, "keyActive": l.KeyActive, "rate": map[string]any{"count": l.Rate, "perSeconds": 1, "burst": l.Burst}}
		if err := ask(ctx, http.MethodPut, s.pathOf("/api/queues/%s/limits", queue), body, nil); err != nil {
			return err
		}
	}
	return nil
}

func (s *stand) close() {
	for i := len(s.closing) - 1; i >= 0; i-- {
		s.closing[i]()
	}
	if s.disk != nil {
		s.disk.close()
	}
}

// all are the processes of the program, by name.
func (s *stand) all() []*node {
	if s.cloud == nil {
		return s.nodes
	}
	return append([]*node{s.cloud}, s.nodes...)
}

func (s *stand) String() string {
	names := make([]string, 0, 4)
	for _, n := range s.all() {
		names = append(names, n.name+" ("+n.roles+")")
	}
	return s.engine + ": " + strings.Join(names, ", ")
}
