package sqlite

import "strings"

// finishedKey is what jobs of one row have in common.
type finishedKey struct {
	queue, age int64
	count      int
	at         int64 // when they finished
}

// finishing is a row that is being filled.
type finishing struct {
	finishedKey
	seq    int64
	q      *queue
	states []byte
	data   []byte
	ids    []int64 // pairs, as finished_id has them
}

// keepFinished puts a finished job into the ledger, unless it is not to be kept.
func (t *tx) keepFinished(q *queue, g *glance, o *outcome, body []byte) {
	t.keepFinishedAt(q, g, o, body, t.now)
}

func (t *tx) keepFinishedAt(q *queue, g *glance, o *outcome, body []byte, at int64) {
	keep := g.finished
	if keep.None {
		return
	}
	key := finishedKey{q.id, int64(keep.Age), keep.Count, at}
	f := t.finishing[key]
	if f == nil || len(f.states) == finishedJobs || len(f.data) >= finishedBytes {
		f = &finishing{finishedKey: key, q: q, seq: t.finishedSeq, data: make([]byte, 1, max(t.l.finishedRoom, 1024))}
		f.data[0] = finishedVersion
		t.finishedSeq++
		if t.finishing == nil {
			t.finishing = map[finishedKey]*finishing{}
		}
		t.finishing[key] = f
		t.finished = append(t.finished, f)
	}
	i := len(f.states)
	t.l.scratch = appendOutcome(t.l.scratch[:0], o, body)
	f.data = appendRecord(f.data, i, t.l.scratch)
	f.states = append(f.states, o.state)
	f.ids = append(f.ids, finishedID(g.id), f.seq<<finishedIdx|int64(i))
}

// writeFinished stores the rows of the transaction, and counts them.
func (t *tx) writeFinished() error {
	for _, f := range t.finished {
		c := t.tally(f.q)
		c.ord += int64(len(f.states))
		for _, s := range f.states {
			c.add(s, 1)
		}
		until, last := any(nil), any(nil)
		if f.age > 0 {
			until = f.at + f.age
		}
		if f.count > 0 {
			last = c.ord + int64(f.count)
		}
		t.l.finishedRoom = (3*t.l.finishedRoom + len(f.data)*5/4) / 4
		err := t.exec("INSERT INTO finished (seq, queue, at, ord, until, last, states, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			f.seq, f.queue, f.at, c.ord, until, last, f.states, f.data)
		if err != nil {
			return err
		}
		if err := t.pairs("INSERT OR IGNORE INTO finished_id (h, at) VALUES ", "", f.ids); err != nil {
			return err
		}
	}
	return t.reserve("finished_seq", t.finishedSeq, t.l.finishedKept)
}

// pairs runs a statement for many pairs, some of them at a time.
func (t *tx) pairs(head, tail string, pairs []int64) error {
	for _, size := range [...]int{64, 16, 4, 1} {
		for len(pairs) >= 2*size {
			args := t.l.args[:0]
			for _, v := range pairs[:2*size] {
				args = append(args, v)
			}
			t.l.args = args
			if err := t.exec(head+strings.Repeat("(?, ?), ", size-1)+"(?, ?)"+tail, args...); err != nil {
				return err
			}
			pairs = pairs[2*size:]
		}
	}
	return nil
}

// tally is what is counted of a queue's finished jobs.
type tally struct {
	ord                           int64 // finished ever, but for those that were not kept
	completed, cancelled, expired int64 // kept
}

func (c *tally) add(state byte, n int64) {
	switch state {
	case stCompleted:
		c.completed += n
	case stCancelled:
		c.cancelled += n
	case stExpired:
		c.expired += n
	}
}

// tally gives the counts of a queue, to be changed by this transaction.
func (t *tx) tally(q *queue) *tally {
	c := t.tallies[q]
	if c == nil {
		c = new(tally)
		*c = q.tally
		if t.tallies == nil {
			t.tallies = map[*queue]*tally{}
		}
		t.tallies[q] = c
	}
	return c
}

func (t *tx) writeTallies() error {
	for q, c := range t.tallies {
		err := t.exec(`INSERT INTO ledger (queue, ord, completed, cancelled, expired) VALUES (?1, ?2, ?3, ?4, ?5)
			ON CONFLICT DO UPDATE SET ord = ?2, completed = ?3, cancelled = ?4, expired = ?5`,
			q.id, c.ord, c.completed, c.cancelled, c.expired)
		if err != nil {
			return err
		}
	}
	return nil
}
