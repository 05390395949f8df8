package sqlite

import (
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// applicationID marks our files ("FBay"), so that somebody else's database is
// not taken for one.
const applicationID = 0x46426179

// migrations lead from each version to the next; user_version says how many have
// been applied. They are never edited once released.
var migrations = [...]string{`
-- What a process restart needs to know once.
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE queue (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, limits TEXT NOT NULL DEFAULT '{}');

-- Messages of one commit for one lane. key = (queue id × 10 + level) << 40 | seq. So many of them are jobs.
CREATE TABLE block (key INTEGER PRIMARY KEY, n INTEGER NOT NULL, sent_at INTEGER NOT NULL, bytes INTEGER NOT NULL, jobs INTEGER NOT NULL, data BLOB NOT NULL);

-- Which messages of a block are settled, and a checksum (sum.go). Apart from it, so that settling does not write payloads again.
CREATE TABLE part (key INTEGER PRIMARY KEY, settled BLOB NOT NULL);

-- Messages with a life of their own: delayed, retried, released, or taken by a lease that ran out.
-- due = 0: at once. grp and lim are hashes, 0: none. ord is the time by which it is ordered. sum: see sum.go.
CREATE TABLE again (key INTEGER NOT NULL, idx INTEGER NOT NULL, queue INTEGER NOT NULL, due INTEGER NOT NULL, ord INTEGER NOT NULL,
  sent_at INTEGER NOT NULL, attempts INTEGER NOT NULL, deliveries INTEGER NOT NULL, grp INTEGER NOT NULL, lim INTEGER NOT NULL,
  sum INTEGER NOT NULL, started INTEGER NOT NULL, failures TEXT NOT NULL DEFAULT '[]', PRIMARY KEY (key, idx)) WITHOUT ROWID;
CREATE INDEX again_due ON again (queue, due, key, idx) WHERE grp = 0;
CREATE INDEX again_grp ON again (queue, due) WHERE grp <> 0;

-- Who holds what, and a checksum. Rows that are found at start belong to a process that died.
CREATE TABLE lease (id INTEGER PRIMARY KEY, items BLOB NOT NULL, at INTEGER NOT NULL);

-- What was sent, to know it again. seq is that of the block.
CREATE TABLE dedup (seq INTEGER PRIMARY KEY, lane INTEGER NOT NULL, at INTEGER NOT NULL, ids BLOB NOT NULL);

CREATE TABLE dead (seq INTEGER PRIMARY KEY AUTOINCREMENT, queue INTEGER NOT NULL, key INTEGER NOT NULL, id TEXT NOT NULL, code TEXT NOT NULL,
  sent_at INTEGER NOT NULL, died_at INTEGER NOT NULL, attempts INTEGER NOT NULL, deliveries INTEGER NOT NULL,
  started INTEGER NOT NULL, until INTEGER, keep INTEGER, cause TEXT NOT NULL, failures TEXT NOT NULL, progress BLOB NOT NULL, body BLOB NOT NULL);
CREATE INDEX dead_queue ON dead (queue, seq);
CREATE INDEX dead_key ON dead (key); -- of the block it was in: its dedup record stays as long as it does
CREATE INDEX dead_id ON dead (id);
CREATE INDEX dead_code ON dead (code, seq);
CREATE INDEX dead_until ON dead (until) WHERE until IS NOT NULL; -- it leaves then
CREATE INDEX dead_keep ON dead (queue, keep, seq) WHERE keep IS NOT NULL; -- it leaves when it is not among so many of the queue's newest

-- Jobs that are completed, cancelled or expired: those of one commit and queue that are kept alike. states has a byte
-- for each, 0: removed. The last of them is the ord-th that has finished in its queue. They leave at until, or
-- when the last-th has finished.
CREATE TABLE finished (seq INTEGER PRIMARY KEY, queue INTEGER NOT NULL, at INTEGER NOT NULL, ord INTEGER NOT NULL,
  until INTEGER, last INTEGER, states BLOB NOT NULL, data BLOB NOT NULL);
CREATE INDEX finished_queue ON finished (queue, seq);
CREATE INDEX finished_until ON finished (until) WHERE until IS NOT NULL;
CREATE INDEX finished_last ON finished (queue, last) WHERE last IS NOT NULL;

-- Where a finished job is, by its id: at = seq << 10 | idx. h grows with time where ids do.
CREATE TABLE finished_id (h INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (h, at)) WITHOUT ROWID;

-- How many jobs of a queue have finished ever, and how many of each state are kept.
CREATE TABLE ledger (queue INTEGER PRIMARY KEY, ord INTEGER NOT NULL, completed INTEGER NOT NULL, cancelled INTEGER NOT NULL, expired INTEGER NOT NULL);

-- Active jobs that were asked to stop.
CREATE TABLE stop (key INTEGER NOT NULL, idx INTEGER NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (key, idx)) WITHOUT ROWID;

-- When jobs expire (kind 0), or reach their deadline (kind 1).
CREATE TABLE ends (at INTEGER NOT NULL, key INTEGER NOT NULL, idx INTEGER NOT NULL, kind INTEGER NOT NULL, PRIMARY KEY (at, key, idx, kind)) WITHOUT ROWID;

-- What happened to jobs: the events of one commit. seq is that of the first. jobs has 8 bytes of a hash for each.
CREATE TABLE history (seq INTEGER PRIMARY KEY, n INTEGER NOT NULL, at INTEGER NOT NULL, bytes INTEGER NOT NULL, jobs BLOB NOT NULL, data BLOB NOT NULL);

-- One row: what the history holds, and the seq of the last event that has left it.
CREATE TABLE history_state (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL, gone INTEGER NOT NULL, n INTEGER NOT NULL, bytes INTEGER NOT NULL);

-- What could not be read any more, kept for people to look at.
CREATE TABLE damaged (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, queue INTEGER NOT NULL, key INTEGER NOT NULL,
  idx INTEGER NOT NULL, reason TEXT NOT NULL, data BLOB NOT NULL);
`, `
-- Documents. Each change is a new row, so that rev grows. expires = 0: never.
CREATE TABLE doc (rev INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT NOT NULL, key TEXT NOT NULL,
  expires INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE (collection, key));
CREATE INDEX doc_expires ON doc (expires) WHERE expires > 0;
`, `
-- Tenants that have something stored. Their ids are from the same numbers as those of queues, and stand in
-- keys of blocks and in again.queue as those of queues do for messages without a tenant.
CREATE TABLE tenant (id INTEGER PRIMARY KEY, queue INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (queue, name));

-- In whose lane a group of a queue with tenants is, see seat.go.
CREATE TABLE grp (queue INTEGER NOT NULL, hash INTEGER NOT NULL, tenant INTEGER NOT NULL, last INTEGER NOT NULL,
  PRIMARY KEY (queue, hash)) WITHOUT ROWID;
CREATE INDEX grp_tenant ON grp (tenant, last);
`, `
-- Signatures of jobs, and blocks that have none, see sign.go. at = what it is of << 56 | the last seq. They were sent
-- from since until until. open: not all terms of their payloads are in bits. spans: the lanes of blocks.
CREATE TABLE sig (at INTEGER PRIMARY KEY, first INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL,
  open INTEGER NOT NULL, spans BLOB NOT NULL, bits BLOB NOT NULL);
CREATE TABLE fresh (seq INTEGER PRIMARY KEY, lane INTEGER NOT NULL);
INSERT INTO fresh (seq, lane) SELECT key & 1099511627775, key >> 40 FROM block WHERE jobs > 0;
`, `
-- Dead letters by cause, see deadgroup.go. print is the fingerprint of one; 0: not told yet. n are there.
ALTER TABLE dead ADD COLUMN print INTEGER NOT NULL DEFAULT 0;
CREATE INDEX dead_print ON dead (print, seq);
CREATE TABLE dead_group (print INTEGER PRIMARY KEY, queue INTEGER NOT NULL, kind TEXT NOT NULL, code TEXT NOT NULL, text TEXT NOT NULL,
  n INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE INDEX dead_group_last ON dead_group (last, print);
CREATE INDEX dead_group_n ON dead_group (n, print);
CREATE TRIGGER dead_leaves AFTER DELETE ON dead BEGIN
  UPDATE dead_group SET n = n - 1 WHERE print = OLD.print;
  DELETE FROM dead_group WHERE print = OLD.print AND n <= 0;
END;
`, `
-- What was sent to queues that keep a log, see log.go. key = queue << 40 | the seq of the block, whose data is here and
-- not in block. The row stays when the block leaves.
CREATE TABLE log (key INTEGER PRIMARY KEY, lane INTEGER NOT NULL, n INTEGER NOT NULL, sent_at INTEGER NOT NULL, bytes INTEGER NOT NULL, data BLOB NOT NULL);

-- Closed slices of it: from key to last. They leave as a whole.
CREATE TABLE log_slice (key INTEGER PRIMARY KEY, last INTEGER NOT NULL, rows INTEGER NOT NULL, n INTEGER NOT NULL, bytes INTEGER NOT NULL,
  since INTEGER NOT NULL, until INTEGER NOT NULL);

-- Up to which key it has left; rows up to there are of blocks that still wait.
CREATE TABLE log_gone (queue INTEGER PRIMARY KEY, gone INTEGER NOT NULL);
`}

// migrate brings a database to this version. A newer one is left untouched.
func migrate(conn *sqlite.Conn) error {
	version, err := pragmaInt(conn, "user_version")
	if err != nil {
		return err
	}
	app, err := pragmaInt(conn, "application_id")
	if err != nil {
		return err
	}
	if err := checkVersion(version, app); err != nil {
		return err
	}
	for _, step := range migrations[version:] {
		version++
		if err := migrateOne(conn, step, version); err != nil {
			return err
		}
	}
	return nil
}

func migrateOne(conn *sqlite.Conn, step string, version int64) (err error) {
	defer sqlitex.Save(conn)(&err)
	if err := sqlitex.ExecuteScript(conn, step, nil); err != nil {
		return err
	}
	if err := pragma(conn, "application_id", applicationID); err != nil {
		return err
	}
	return pragma(conn, "user_version", version)
}
