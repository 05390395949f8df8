package sqlite

import (
	"errors"

	"zombiezen.com/go/sqlite"
)

// mendLedger makes up anew what follows from other tables: where finished jobs are,
// how many there are, when jobs end, and how much history there is.
func (c *copier) mendLedger() error {
	return errors.Join(c.mendFinished(), c.mendEnds(), c.mendHistory())
}

// mendFinished counts finished jobs, and finds them by their ids.
func (c *copier) mendFinished() error {
	tallies := map[int64]*tally{}
	err := c.to.each("SELECT queue, ord FROM ledger", func(s *sqlite.Stmt) error {
		tallies[s.ColumnInt64(0)] = &tally{ord: s.ColumnInt64(1)}
		return nil
	})
	if err != nil {
		return err
	}
	var ids []int64
	err = c.to.each("SELECT queue, ord, states, data, seq FROM finished", func(s *sqlite.Stmt) error {
		n := tallies[s.ColumnInt64(0)]
		if n == nil {
			n = &tally{}
			tallies[s.ColumnInt64(0)] = n
		}
		n.ord = max(n.ord, s.ColumnInt64(1))
		states := columnBytes(s, 2)
		for _, state := range states {
			n.add(state, 1)
		}
		eachFinishedID(s.ColumnInt64(4), columnBytes(s, 3), len(states), func(h, at int64) { ids = append(ids, h, at) })
		return nil
	})
	for i := 0; i < len(ids) && err == nil; i += 2 {
		err = c.to.exec("INSERT OR IGNORE INTO finished_id (h, at) VALUES (?, ?)", ids[i], ids[i+1])
	}
	if err != nil {
		return err
	}
	if err := c.to.exec("DELETE FROM ledger"); err != nil {
		return err
	}
	for queue, n := range tallies {
		err = errors.Join(err, c.to.exec("INSERT INTO ledger (queue, ord, completed, cancelled, expired) VALUES (?, ?, ?, ?, ?)",
			queue, n.ord, n.completed, n.cancelled, n.expired))
	}
	return errors.Join(err, c.mendSeq("finished_seq", "SELECT max(seq) FROM finished"))
}

// eachFinishedID gives the entries of finished_id of one row. A record that cannot be
// read has none.
func eachFinishedID(seq int64, data []byte, n int, f func(h, at int64)) {
	recs, _ := records(data, min(n, finishedJobs))
	for i, r := range recs {
		if r[1] == 0 {
			continue
		}
		body, err := outcomeBody(data[r[0]:r[1]])
		if err != nil {
			continue
		}
		if g, err := glanceAt(body); err == nil {
			f(finishedID(g.id), seq<<finishedIdx|int64(i))
		}
	}
}

// mendEnds reads from the jobs themselves when they end.
func (c *copier) mendEnds() error {
	var all []end
	err := c.to.each("SELECT key, n, data FROM block", func(s *sqlite.Stmt) error {
		key, data := s.ColumnInt64(0), columnBytes(s, 2)
		recs, _ := records(data, int(min(max(s.ColumnInt64(1), 0), blockMessages)))
		for i, r := range recs {
			if r[1] == 0 || !isJob(data[r[0]:r[1]]) {
				continue
			}
			g, err := glanceAt(data[r[0]:r[1]])
			if err == nil && g.expires != 0 {
				all = append(all, end{g.expires, key, int64(i), endExpires})
			}
			if err == nil && g.deadline != 0 {
				all = append(all, end{g.deadline, key, int64(i), endDeadline})
			}
		}
		return nil
	})
	for _, n := range all {
		err = errors.Join(err, c.to.exec("INSERT OR IGNORE INTO ends (at, key, idx, kind) VALUES (?, ?, ?, ?)", n.at, n.key, n.idx, n.kind))
	}
	return err
}

// mendHistory counts what there is. Where its state is lost, the next start begins a
// new epoch.
func (c *copier) mendHistory() error {
	err := c.to.exec("UPDATE history_state SET n = (SELECT ifnull(sum(n), 0) FROM history), bytes = (SELECT ifnull(sum(bytes), 0) FROM history)")
	return errors.Join(err, c.mendSeq("event_seq", "SELECT max(seq + n) FROM history"))
}

// mendSeq moves a mark beyond all numbers that may have been used.
func (c *copier) mendSeq(name, used string) error {
	top, err := c.to.int(used)
	if err != nil {
		return err
	}
	return c.to.exec("INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = max(value, ?2)", name, top+seqsAhead)
}
