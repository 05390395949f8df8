// Package config reads the settings of the program: flags, then environment,
// then a YAML file, then the defaults, in this order of weight.
//
// It promises to find all problems in one go, to name each one with its place and
// what is allowed there, and to tell for each setting where its value came from.
// It never prints a secret.
//
// It refuses to look at anything else: whether a port is free or a database
// answers is found out by who uses the setting.
package config

import "time"

// Settings is what a user can set. Load fills it; every field has a default.
type Settings struct {
	Server Server
	Data   Data
	Ingest Ingest
	Bad    Bad
	Sink   Sink
	Log    Log
	Queues map[string]Queue // policies by queue name; DefaultQueue holds for the rest

	Handlers map[string]Handler // by kind of job
	Reports  map[string]Report  // by name
	History  History
	Flows    Flows
	Storage  Storage
	Images   Images
	Mail     Mail
	Webhooks Webhooks
	Alerts   Alerts

	SQS       SQS
	SQSAPI    SQSAPI
	SQSQueues map[string]SQSQueue // by name

	Redis Redis

	Postgres Postgres

	Encryption     Encryption
	EncryptionKeys map[string]EncryptionKey // by id

	Health Health
	Mask   []string        // of payloads
	Rules  map[string]Rule // of alerts, by name

	all []*setting // in the order of the documentation
}

// Server settings: the HTTP listener and how it stops.
type Server struct {
	Listen    string // "host:port", or a port alone
	PublicURL string
	Insecure  bool
	Grace     time.Duration
	Drain     time.Duration
	Roles     []string

	TLSCert     string
	TLSKey      string
	TLSClientCA string
}

// Data settings: the folder that holds everything.
type Data struct {
	Dir        string
	Durability string
	Reserve    int64
}

// Ingest settings: the limits of the edge.
type Ingest struct {
	MaxEvent    int64
	MaxBody     int64
	MaxDecoded  int64
	MaxBatch    int64
	MaxInflight int64
	MaxBacklog  int64
	DedupWindow time.Duration
	Schemas     string
	SchemaMode  string
}

// Bad settings: how much of what was rejected is kept.
type Bad struct {
	MaxRows  int64
	MaxBytes int64
	MaxAge   time.Duration
}

// Sink settings: where events are written, and in what portions.
type Sink struct {
	URL         string
	BatchMax    int64
	BatchBytes  int64
	BatchAge    time.Duration
	Connections int64
	Retention   time.Duration
}

// Log settings.
type Log struct {
	Level  string
	Format string
}

// Queue is the policy of one queue.
type Queue struct {
	Attempts    int64
	Deliveries  int64
	Backoff     time.Duration
	BackoffMax  time.Duration
	Lease       time.Duration
	Concurrency int64 // 0: as many as the back end takes, from ConcurrencyMin to ConcurrencyMax
	Timeout     time.Duration
	KeepAge     time.Duration
	KeepCount   int64
	HistoryAge  time.Duration
	DeadMost    int64
	Encrypt     bool
	SQS         string // URL of the queue of AWS over which its jobs run; empty: none

	TargetLatency  time.Duration
	ConcurrencyMin int64
	ConcurrencyMax int64
}

// DefaultQueue names the policy of queues that have none of their own.
const DefaultQueue = "default"

const (
	kb  = 1000
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30

	day = 24 * time.Hour
)

func newSettings() *Settings {
	s := &Settings{Queues: map[string]Queue{}, Handlers: map[string]Handler{}, Reports: map[string]Report{}, SQSQueues: map[string]SQSQueue{}, Rules: map[string]Rule{}, EncryptionKeys: map[string]EncryptionKey{}}
	s.all = append(s.all, s.serverTable()...)
	s.all = append(s.all, s.dataTable()...)
	s.all = append(s.all, s.ingestTable()...)
	s.all = append(s.all, s.sinkTable()...)
	s.all = append(s.all, s.logTable()...)
	s.all = append(s.all, s.taskTable()...)
	s.all = append(s.all, s.notifyTable()...)
	s.all = append(s.all, s.sqsTable()...)
	s.all = append(s.all, s.redisTable()...)
	s.all = append(s.all, s.postgresTable()...)
	s.all = append(s.all, s.encryptionTable()...)
	s.all = append(s.all, s.healthTable()...)
	s.all = append(s.all, s.ruleTables()...)
	s.all = append(s.all, queueTable(DefaultQueue)...)
	return s
}

func (s *Settings) serverTable() []*setting {
	v, d := &s.Server, &s.Data
	return []*setting{
		{key: "server.listen", env: "PORT", value: address(&v.Listen, "127.0.0.1:8080"),
			doc: "Where to listen. A port alone means loopback, or every address once a key exists (forebay keys add)."},
		{key: "server.publicUrl", value: webURL(&v.PublicURL),
			doc: "Where others reach this server, such as the targets of pushes, which tell progress there. Empty: the address it listens on."},
		{key: "server.insecure", value: flag(&v.Insecure, false),
			doc: "Allow listening beyond loopback while no key exists: anyone who reaches the port may then send and read."},
		{key: "server.grace", value: duration(&v.Grace, 500*time.Millisecond, 0, time.Minute),
			doc: "After SIGTERM, how long new requests are still taken while /readyz already answers 503."},
		{key: "server.drain", value: duration(&v.Drain, 20*time.Second, 100*time.Millisecond, time.Hour),
			doc: "After that, how long running requests and batches may take to finish before they are cancelled."},
		{key: "server.roles", value: roles(&v.Roles),
			doc: "What this server does. Less than all needs a queue that servers share (sqs.url, redis.url, postgres.url)."},

		{key: "server.tlsCert", value: text(&v.TLSCert, "", 1024),
			doc: "A file with the certificate to speak TLS with, and those that lead to its issuer, as PEM. Renewed files are taken up without a restart. This machine may speak plain HTTP all the same. Empty: plain HTTP."},
		{key: "server.tlsKey", value: text(&v.TLSKey, "", 1024),
			doc: "The file with the private key of that certificate, as PEM."},
		{key: "server.tlsClientCA", value: text(&v.TLSClientCA, "", 1024),
			doc: "A file with the certificates of issuers, as PEM: clients over TLS must show a certificate of one of them. Keys are needed all the same. Empty: no certificate is asked for."},

		{key: "data.dir", env: "FOREBAY_DATA", value: text(&d.Dir, "data", 1024),
			doc: "The folder that holds the queue, the events without a database, the rejected rows and the keys."},
	}
}

func (s *Settings) dataTable() []*setting {
	v := &s.Data
	return []*setting{
		{key: "data.durability", value: choice(&v.Durability, "full", "process"),
			doc: "With full, what was answered with 202 survives a power loss; with process, a crash of the program only, and it is faster."},
		{key: "data.reserve", value: size(&v.Reserve, 256*mib, 0, 1000*gib),
			doc: "Disk space to leave free. With less, events are answered with 503 until there is room. The queue keeps 64MiB in any case, so that what waits can be settled."},
	}
}

func (s *Settings) ingestTable() []*setting {
	v, b := &s.Ingest, &s.Bad
	return []*setting{
		{key: "ingest.maxEvent", value: size(&v.MaxEvent, 256*kib, 1*kib, 1000*kib),
			doc: "The largest event, as JSON. A larger one is rejected by itself; its batch goes on."},
		{key: "ingest.maxBody", value: size(&v.MaxBody, 500*kb, 1*kib, 64*mib),
			doc: "The largest request body as sent (413 beyond)."},
		{key: "ingest.maxDecoded", value: size(&v.MaxDecoded, 4*mib, 1*kib, 256*mib),
			doc: "The largest request body after gzip or zstd (413 beyond)."},
		{key: "ingest.maxBatch", value: number(&v.MaxBatch, 2500, 1, 10_000),
			doc: "The most events in one request (413 beyond)."},
		{key: "ingest.maxInflight", value: size(&v.MaxInflight, 64*mib, 1*mib, 100*gib),
			doc: "The most memory for request bodies that are being handled (503 beyond)."},
		{key: "ingest.maxBacklog", value: number(&v.MaxBacklog, 10_000_000, 1, 1_000_000_000),
			doc: "The most events that may wait for the sink (503 beyond, with a Retry-After by the measured drain rate)."},
		{key: "ingest.dedupWindow", value: duration(&v.DedupWindow, day, time.Minute, 30*day),
			doc: "How long an event id is remembered; the same id within this time is a duplicate."},
		{key: "ingest.schemas", value: text(&v.Schemas, "", 1024),
			doc: "A folder of JSON Schemas, one file per event type (<eventType>.json). Empty: none."},
		{key: "ingest.schemaMode", value: choice(&v.SchemaMode, "enforce", "warn", "off"),
			doc: "With enforce, events that do not match are rejected; with warn, taken and counted; with off, nothing is looked at."},

		{key: "bad.maxRows", value: number(&b.MaxRows, 100_000, 1, 100_000_000),
			doc: "The most rejected rows to keep; the oldest leave first and are counted."},
		{key: "bad.maxBytes", value: size(&b.MaxBytes, 256*mib, 1*mib, 1000*gib),
			doc: "The most bytes of rejected rows to keep."},
		{key: "bad.maxAge", value: duration(&b.MaxAge, 30*day, time.Minute, 3650*day),
			doc: "How long to keep a rejected row."},
	}
}

func (s *Settings) sinkTable() []*setting {
	v := &s.Sink
	return []*setting{
		{key: "sink.url", env: "DATABASE_URL", secret: true, value: databaseURL(&v.URL),
			doc: "The PostgreSQL to write to: postgres://user:password@host/database. Empty: the file events.db in the data folder."},
		{key: "sink.batchMax", value: number(&v.BatchMax, 1000, 1, 10_000),
			doc: "The most events in one write."},
		{key: "sink.batchBytes", value: size(&v.BatchBytes, 4*mib, 1*kib, 256*mib),
			doc: "The most bytes in one write."},
		{key: "sink.batchAge", value: duration(&v.BatchAge, time.Second, 0, 5*time.Minute),
			doc: "How long the first event of a write may wait for others."},
		{key: "sink.connections", value: number(&v.Connections, 2, 1, 64),
			doc: "How many writes run side by side (PostgreSQL only; a SQLite file takes one)."},
		{key: "sink.retention", value: duration(&v.Retention, 0, 0, 36500*day),
			doc: "How long to keep written events. 0: for ever."},
	}
}

func (s *Settings) logTable() []*setting {
	v := &s.Log
	return []*setting{
		{key: "log.level", value: choice(&v.Level, "info", "debug", "warn", "error"),
			doc: "The least important lines to log."},
		{key: "log.format", value: choice(&v.Format, "auto", "text", "json"),
			doc: "With auto, text on a terminal, else JSON."},
	}
}

// queueTable makes the settings of one queue. They live in the table until finish
// copies them into Settings.Queues.
func queueTable(name string) []*setting {
	q := &Queue{}
	at := "queues." + name + "."
	return []*setting{
		{key: at + "attempts", queue: q, value: number(&q.Attempts, 10, 1, 1000),
			doc: "Failed attempts before a message is a dead letter."},
		{key: at + "deliveries", queue: q, value: number(&q.Deliveries, 0, 0, 10_000),
			doc: "Hand-outs, crashes included, before a message counts as poison. 0: twice its attempts, at least 20."},
		{key: at + "backoff", queue: q, value: duration(&q.Backoff, time.Second, time.Millisecond, time.Hour),
			doc: "The wait after the first failure; it doubles with each further one, with jitter."},
		{key: at + "backoffMax", queue: q, value: duration(&q.BackoffMax, 5*time.Minute, time.Millisecond, 7*day),
			doc: "The longest wait between attempts."},
		{key: at + "lease", queue: q, value: duration(&q.Lease, 30*time.Second, time.Second, 12*time.Hour),
			doc: "How long a worker owns a message without a sign of life."},
		{key: at + "concurrency", queue: q, value: numberOr("auto", &q.Concurrency, 10, 1, 10_000),
			doc: "How many jobs of the queue this server works on at once, where it has handlers for them. With auto, as many as what stands behind them takes: it follows how long they take, and errors that say that it is too much. Of the queue events, auto is for the writes to PostgreSQL, up to sink.connections."},
		{key: at + "concurrencyMin", queue: q, value: number(&q.ConcurrencyMin, 1, 1, 10_000),
			doc: "With concurrency: auto, never fewer."},
		{key: at + "concurrencyMax", queue: q, value: number(&q.ConcurrencyMax, 100, 1, 10_000),
			doc: "With concurrency: auto, never more."},
		{key: at + "timeout", queue: q, value: duration(&q.Timeout, 0, 0, 7*day),
			doc: "How long one attempt of a job may take, where the job says nothing. 0: as long as it wants."},
		{key: at + "keepAge", queue: q, value: duration(&q.KeepAge, 3*day, 0, 3650*day),
			doc: "How long finished jobs are kept, where the job says nothing. Dead ones are kept until somebody acts on them."},
		{key: at + "keepCount", queue: q, value: number(&q.KeepCount, 1_000_000, 0, 1_000_000_000),
			doc: "How many finished jobs of the queue are kept."},
		{key: at + "historyAge", queue: q, value: duration(&q.HistoryAge, 7*day, 0, 3650*day),
			doc: "How long messages of the queue can be read and replayed after they were settled (forebay history). 0: not at all."},
		{key: at + "deadMost", queue: q, value: number(&q.DeadMost, 0, 0, 1_000_000_000),
			doc: "How many dead letters of the queue are kept; beyond it the oldest leave, counted and alerted of. 0: all. It holds for queues that the settings name, not for others by queues.default."},
		{key: at + "encrypt", queue: q, value: flag(&q.Encrypt, true),
			doc: "With encryption.current, whether what the queue says is sealed. BullMQ workers on Redis cannot read what is."},
		{key: at + "sqs", queue: q, value: webURL(&q.SQS),
			doc: "The standard queue of AWS SQS over which the jobs of the queue run; their rows stay here. Empty: none. Region, endpoint and credentials are those of sqs.url; it is no setting of queues.default."},
		{key: at + "targetLatency", queue: q, value: duration(&q.TargetLatency, 30*time.Second, 10*time.Millisecond, day),
			doc: "How long a message may wait for its handler. How many workers the queue wants follows from it (/api/scaling, forebay_desired_workers)."},
	}
}
