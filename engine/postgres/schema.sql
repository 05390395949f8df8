-- Version 1 of the layout. The mark before a name becomes the schema.

CREATE SEQUENCE ~seq;
CREATE SEQUENCE ~no;
CREATE SEQUENCE ~dead_no;
CREATE SEQUENCE ~place;
CREATE SEQUENCE ~rev;

-- Queues never leave: their numbers are in receipts.
CREATE TABLE ~queue (
  id      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name    text COLLATE "C" NOT NULL UNIQUE,
  limits  bytea,
  special bool NOT NULL DEFAULT false,  -- it has had groups, limit keys or tenants
  turn    bigint NOT NULL DEFAULT 0,
  full_at float8 NOT NULL DEFAULT 0     -- when its bucket of starts is full again, in µs
) WITH (fillfactor = 50);

CREATE TABLE ~lane (
  queue  int NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  turn   bigint NOT NULL,
  PRIMARY KEY (queue, tenant)
) WITH (fillfactor = 50);

CREATE TABLE ~pace (
  queue     int NOT NULL,
  limit_key text COLLATE "C" NOT NULL,
  full_at   float8 NOT NULL,
  wake      bigint,                      -- when one that is held may go on
  PRIMARY KEY (queue, limit_key)
) WITH (fillfactor = 50);
CREATE INDEX pace_wake ON ~pace (queue, wake) WHERE wake IS NOT NULL;

-- What waits or is active. It is narrow: claims rewrite these rows and no others.
-- state: 0 ready, 1 delayed, 2 active, 3 behind another of its chain, 4 held by its limit key
CREATE TABLE ~item (
  seq        bigint PRIMARY KEY,
  queue      int NOT NULL,
  state      smallint NOT NULL,
  rank       bigint NOT NULL,
  sent       bigint NOT NULL,
  due        bigint NOT NULL,
  until      bigint NOT NULL,
  alarm      bigint,
  token      bigint NOT NULL,
  attempts   int NOT NULL,
  deliveries int NOT NULL,
  size       int NOT NULL,
  job        bool NOT NULL,
  tenant     text COLLATE "C" NOT NULL,
  chain      text COLLATE "C",
  limit_key  text COLLATE "C",
  expires    bigint NOT NULL,
  deadline   bigint NOT NULL,
  started    bigint NOT NULL,
  extra      bytea
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 1);
CREATE INDEX item_ready ON ~item (queue, tenant, rank, seq) WHERE state = 0;
CREATE INDEX item_due ON ~item (queue, due) WHERE state = 1;
CREATE INDEX item_until ON ~item (queue, until) WHERE state = 2;
CREATE INDEX item_alarm ON ~item (queue, alarm) WHERE alarm IS NOT NULL;
CREATE INDEX item_chain ON ~item (queue, chain, seq) WHERE chain IS NOT NULL;
CREATE INDEX item_key ON ~item (queue, limit_key, state, rank, seq) WHERE limit_key IS NOT NULL;
CREATE INDEX item_job ON ~item (queue, seq) WHERE job;

-- What a message says. It is written once, and goes with its message.
CREATE TABLE ~body (
  seq     bigint PRIMARY KEY,
  id      text COLLATE "C" NOT NULL,
  kind    text COLLATE "C" NOT NULL,
  dedup   text COLLATE "C",
  meta    bytea NOT NULL,
  payload bytea NOT NULL,
  older   bigint                         -- a finished job that had the same id before
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);

-- Ids and dedup keys, for as long as their window lasts or their message is there.
CREATE TABLE ~record (
  key   text COLLATE "C" PRIMARY KEY,
  seq   bigint NOT NULL,
  queue int NOT NULL,
  id    text COLLATE "C" NOT NULL,
  until bigint NOT NULL,
  look  bigint NOT NULL,                 -- when it may leave
  print bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX record_look ON ~record (look);

-- Finished jobs and dead letters.
CREATE TABLE ~ended (
  no    bigint NOT NULL,
  seq   bigint NOT NULL UNIQUE,
  queue int NOT NULL,
  state text NOT NULL,
  dead  bool NOT NULL,
  job   bool NOT NULL,
  sent  bigint NOT NULL,
  at    bigint NOT NULL,
  leave bigint,
  keep  int NOT NULL,
  print bigint NOT NULL,
  code  text COLLATE "C" NOT NULL,
  tell  bytea NOT NULL,
  PRIMARY KEY (dead, no)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX ended_queue ON ~ended (queue, dead, no);
CREATE INDEX ended_leave ON ~ended (leave) WHERE leave IS NOT NULL;
CREATE INDEX ended_print ON ~ended (print, no) WHERE dead;

CREATE TABLE ~deadgroup (
  print  bigint PRIMARY KEY,
  queue  text COLLATE "C" NOT NULL,
  kind   text COLLATE "C" NOT NULL,
  code   text COLLATE "C" NOT NULL,
  said   text NOT NULL,
  count  bigint NOT NULL,
  first  bigint NOT NULL,
  last   bigint NOT NULL,
  sample bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE ~event (
  seq     bigint PRIMARY KEY DEFAULT nextval('~place'),
  at      bigint NOT NULL,
  type    text NOT NULL,
  job     text COLLATE "C" NOT NULL,
  queue   text COLLATE "C" NOT NULL,
  kind    text COLLATE "C" NOT NULL,
  attempt int NOT NULL,
  state   text NOT NULL,
  more    bytea
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX event_job ON ~event (job, seq);

CREATE TABLE ~document (
  collection text COLLATE "C" NOT NULL,
  key        text COLLATE "C" NOT NULL,
  rev        bigint NOT NULL,
  value      bytea NOT NULL,
  expires    bigint,
  PRIMARY KEY (collection, key)
);
CREATE INDEX document_expires ON ~document (expires) WHERE expires IS NOT NULL;
