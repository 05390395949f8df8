package sqlite

import (
	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// A group's messages are handed out in the order in which they were sent, and it
// is a lane that knows that order. So while a group has something stored, all of it
// goes into the lane of one tenant, the one who came first, whoever sends it. The
// table grp says which, in queues that have tenants: last is a seq after which
// nothing of the group was sent. The group is done there when the lane has no block
// left up to it.
//
// What was sent to the home of a queue before it had tenants has no row, and stands
// for all groups while it is there (queue.since).

// seat names a group.
type seat struct {
	q    *queue
	hash uint64
}

// cleanedAtOnce is how many rows of groups that are done leave with each that is written.
const cleanedAtOnce = 4

// seat finds the tenant in whose lane a message of a group belongs.
func (t *tx) seat(q *queue, m *encoded) error {
	at := seat{q, m.group}
	if in, ok := t.seats[at]; ok {
		m.in = in
		return nil
	}
	var in, last int64
	err := t.l.db.each("SELECT tenant, last FROM grp WHERE queue = ? AND hash = ?", func(s *sqlite.Stmt) error {
		in, last = s.ColumnInt64(0), s.ColumnInt64(1)
		return nil
	}, q.id, int64(m.group))
	if err != nil {
		return err
	}
	there := false
	if in != 0 {
		if there, err = t.l.laneHas(in, last); err != nil {
			return err
		}
	}
	if !there {
		if in, err = t.unseated(q, m.in); err != nil {
			return err
		}
	}
	if t.seats == nil {
		t.seats = map[seat]int64{}
	}
	t.seats[at], m.in = in, in
	return nil
}

// unseated is where a group goes of which no row tells that anything is there.
func (t *tx) unseated(q *queue, want int64) (int64, error) {
	if want == q.id {
		return want, nil
	}
	since := q.since
	if len(q.tenants) == 0 {
		since = t.seq
		if t.open[groupLane(q.id)] != nil {
			return q.id, nil
		}
	}
	older, err := t.l.laneHas(q.id, since)
	if older {
		want = q.id
	}
	return want, err
}

func groupLane(tenant int64) int64 { return laneID(tenant, forebay.Priority(0).Level()) }

// laneHas tells whether a tenant's lane for groups has a block up to a seq.
func (l *loop) laneHas(tenant, last int64) (bool, error) {
	lane := groupLane(tenant)
	n, err := l.db.int("SELECT 1 FROM block WHERE key >= ? AND key <= ? LIMIT 1", blockKey(lane, 0), blockKey(lane, last))
	return n > 0, err
}

// writeSeat stores where a group is, and cleans up.
func (t *tx) writeSeat(at seat, in int64) error {
	err := t.exec(`INSERT INTO grp (queue, hash, tenant, last) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT DO UPDATE SET tenant = ?3, last = ?4`, at.q.id, int64(at.hash), in, t.seq)
	if err != nil || t.l.damaged {
		return err
	}
	lane := groupLane(in)
	first, err := t.l.db.int("SELECT key FROM block WHERE key >= ? AND key <= ? ORDER BY key LIMIT 1", blockKey(lane, 0), blockKey(lane, seqMask))
	if err != nil {
		return err
	}
	return t.exec(`DELETE FROM grp WHERE (queue, hash) IN
		(SELECT queue, hash FROM grp WHERE tenant = ? AND last < ? ORDER BY last LIMIT ?)`, in, seqOf(first), int64(cleanedAtOnce))
}

// unseatAll drops a slice of the rows of a tenant that has nothing stored; it tells whether that were all.
func (l *loop) unseatAll(tenant int64) (done bool, err error) {
	err = l.db.exec("DELETE FROM grp WHERE (queue, hash) IN (SELECT queue, hash FROM grp WHERE tenant = ? LIMIT ?)", tenant, int64(idleAtOnce))
	return err == nil && l.db.conn.Changes() < idleAtOnce, err
}
