package sqlite

// seqsAhead is how many block seqs are reserved in the store at a time. A seq is
// never used twice, also when its block is long gone: dedup records name it.
const seqsAhead = 1 << 20

// tx is one transaction: what is to be written, and what is to become visible in
// memory once it is committed. Nothing of it is visible before, but claims: they
// are true without the store, which only remembers them for a crash.
type tx struct {
	l     *loop
	now   int64
	began bool // the store has it open
	wrote bool // it had anything to write
	extra bool // writes what no call asked for: leases, and what became of them

	hint     int // size of the block that may be needed
	count    int // messages that may be sent
	seq      int64
	queues   map[string]*queue  // made by this transaction
	open     map[int64]*builder // the block that is being filled, by lane; of what was sent before by -lane
	made     []*builder         // all blocks
	ids      map[digest]int     // what this transaction sent: places in entries
	entries  []entry
	keyed    map[digest]builtAt // jobs with a dedup key that this transaction sent
	settled  map[*block]*bitmap // what is settled by this transaction
	ledger                      // what it says of jobs
	logging                     // what it says of logs
	rewrites map[*block]*rewritten
	moved    leaving // jobs that end without a lease, or get another place
	placing          // of tenants
	buried   int     // dead letters
	kept     map[*queue]keptLimits
	claims   []*receive          // served
	gone     []*lease            // ended by time
	touched  map[*lease]struct{} // of which messages are settled
	failure  error               // of a write that nobody waits for
}

func (l *loop) newTx() *tx {
	return &tx{l: l, now: l.now(), seq: l.seq, hint: 1024, ledger: ledger{eventSeq: l.history.next, finishedSeq: l.finishedSeq}}
}

// exec writes, and begins the transaction with the first write.
func (t *tx) exec(sql string, args ...any) error {
	if !t.began {
		if err := t.l.db.exec("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		t.began, t.wrote = true, true
	}
	return t.l.db.exec(sql, args...)
}

// note keeps the failure of a write that only serves a later start; it makes the
// transaction fail.
func (t *tx) note(err error) {
	if t.failure == nil {
		t.failure = err
	}
}

// commit writes what was gathered. It is not on the disk yet.
func (t *tx) commit() error {
	if t.failure != nil {
		return t.failure
	}
	for _, b := range t.made {
		if err := t.writeBlock(b); err != nil {
			return err
		}
	}
	for at, in := range t.seats {
		if err := t.writeSeat(at, in); err != nil {
			return err
		}
	}
	for b, marks := range t.settled {
		if err := t.writeMarks(b, marks); err != nil {
			return err
		}
	}
	for _, ls := range t.gone {
		if err := t.exec("DELETE FROM lease WHERE id = ?", ls.id); err != nil {
			return err
		}
	}
	for ls := range t.touched {
		if err := t.writeLease(ls); err != nil {
			return err
		}
	}
	if err := t.writeRewrites(); err != nil {
		return err
	}
	if err := t.writeLedger(); err != nil {
		return err
	}
	if t.seq > t.l.seqKept {
		err := t.exec("UPDATE meta SET value = ? WHERE name = 'seq'", t.seq+seqsAhead)
		if err != nil {
			return err
		}
	}
	if !t.began {
		return nil
	}
	if err := t.l.db.exec("COMMIT"); err != nil {
		return err
	}
	t.began = false
	return nil
}

func (t *tx) rollback() {
	// SQLite may have rolled back by itself; then this fails, and nothing is open.
	if t.began && !t.l.db.conn.AutocommitEnabled() {
		_ = t.l.db.exec("ROLLBACK")
	}
	t.began = false
	t.undoRewrites()
	t.unpin()
}

// unpin lets go of the blocks of which something was settled.
func (t *tx) unpin() {
	for b := range t.settled {
		b.pins--
		t.l.blocks.release(b)
	}
	clear(t.settled)
}

// settledNow tells whether this transaction settles a message.
func (t *tx) settledNow(key int64, idx int) bool {
	marks := t.settled[t.l.blocks.byKey[key]]
	return marks != nil && marks.has(idx)
}

// isStored tells whether a message is stored and stays.
func (t *tx) isStored(key int64, idx int) (bool, error) {
	if t.settledNow(key, idx) {
		return false, nil
	}
	return t.l.isStored(key, idx)
}

// builder is a block that is being filled.
type builder struct {
	key      int64
	q        *queue
	old      bool // of messages that were sent before
	sentAt   int64
	data     []byte
	recs     [][2]int32
	ids      []byte
	hashes   []digest
	longest  int64 // window of its entries
	jobs     int
	delayed  []*ref
	failures map[int][]byte // of those that failed before
}

// add puts a message into the open block of its lane, and makes it known to later
// messages of the same transaction.
func (t *tx) add(q *queue, m *encoded) {
	lane := laneID(m.in, m.level)
	open := lane
	if q.log.age > 0 {
		if m.was != nil || m.again {
			open = -lane // the log has it: apart from what is new
		}
		delete(t.open, -open) // what comes now comes later
	}
	b := t.open[open]
	if b == nil || len(b.recs) == blockMessages || len(b.data)+len(m.body)+recordHeader > blockBytes {
		n, room := t.room()
		b = &builder{
			key: blockKey(lane, t.seq), q: q, old: open < 0, sentAt: t.now, data: make([]byte, 1, room),
			recs: make([][2]int32, 0, n), ids: make([]byte, 0, n*entryBytes), hashes: make([]digest, 0, n),
		}
		b.data[0] = blockVersion
		t.seq++
		if t.open == nil {
			t.open = map[int64]*builder{}
		}
		t.open[open] = b
		t.made = append(t.made, b)
	}
	i := len(b.recs)
	b.data = appendRecord(b.data, i, m.body)
	b.recs = append(b.recs, [2]int32{int32(len(b.data) - len(m.body)), int32(len(b.data))})
	n := m.entry(t.now)
	b.ids = n.append(b.ids)
	b.longest = max(b.longest, t.l.window(m.window))
	b.hashes = append(b.hashes, m.id)
	if m.hasKey {
		b.hashes = append(b.hashes, m.key)
	}
	switch {
	case m.was != nil:
		r := *m.was
		r.key, r.idx, r.stored = b.key, i, true
		if r.due > 0 {
			r.ord = r.due
		}
		b.delayed = append(b.delayed, &r)
		if m.failures != nil {
			if b.failures == nil {
				b.failures = map[int][]byte{}
			}
			b.failures[i] = m.failures
		}
	case m.due > t.now:
		b.delayed = append(b.delayed, &ref{
			key: b.key, idx: i, ord: m.due, due: m.due, sentAt: t.now,
			group: m.group, limitKey: m.limitKey, stored: true,
		})
	}
	t.remember(m, n, b)
	if m.job != nil {
		b.jobs++
		t.end(b.key, i, m.job)
	}
}

// wideTx is how many blocks of one transaction are made as if all its messages went
// there. There may be one for each tenant.
const wideTx = 8

// room is how many messages the next block may get, and bytes.
func (t *tx) room() (n, bytes int) {
	if len(t.made) < wideTx {
		return min(t.count, blockMessages), t.hint
	}
	return 1, 512
}

func (t *tx) writeBlock(b *builder) error {
	data, err := t.writeLog(b)
	if err != nil {
		return err
	}
	err = t.exec("INSERT INTO block (key, n, sent_at, bytes, jobs, data) VALUES (?, ?, ?, ?, ?, ?)",
		b.key, int64(len(b.recs)), b.sentAt, int64(len(b.data)), int64(b.jobs), data)
	if err != nil {
		return err
	}
	err = t.exec("INSERT INTO dedup (seq, lane, at, ids) VALUES (?, ?, ?, ?)",
		seqOf(b.key), laneOf(b.key), b.sentAt, b.ids)
	if err != nil {
		return err
	}
	for _, r := range b.delayed {
		if err := t.keep(b.q, r, b.failures[r.idx]); err != nil {
			return err
		}
	}
	if b.jobs == 0 {
		return nil
	}
	return t.writeFresh(b.key)
}

// settle marks message i of a block as settled.
func (t *tx) settle(b *block, i int) {
	if t.settled == nil {
		t.settled = map[*block]*bitmap{}
	}
	if own := t.l.blocks.byKey[b.key]; own != nil {
		b = own // two blocks of one key would know of half of what is settled each
	}
	marks := t.settled[b]
	if marks == nil {
		b.pins++
		t.l.blocks.byKey[b.key] = b
		marks = new(bitmap)
		*marks = b.settled
		t.settled[b] = marks
	}
	marks.set(i)
}

// writeMarks stores what is settled of a block; a block that is settled whole
// leaves the store, or else the next start lets it leave.
func (t *tx) writeMarks(b *block, marks *bitmap) error {
	if marks.count() < b.n || t.l.damaged {
		return t.exec("INSERT INTO part (key, settled) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET settled = ?2",
			b.key, seal(b.key, marks.bytes(b.n)))
	}
	if b.settled != (bitmap{}) {
		if err := t.exec("DELETE FROM part WHERE key = ?", b.key); err != nil {
			return err
		}
	}
	return t.dropBlock(b.key)
}

// publish makes what was committed visible.
func (t *tx) publish() {
	l := t.l
	if t.seq > l.seqKept {
		l.seqKept = t.seq + seqsAhead
	}
	l.seq = t.seq
	l.takeIDs(t.reused, t.unused)
	for _, q := range t.queues {
		l.addQueue(q)
	}
	for _, tn := range t.tenants {
		l.addTenant(tn)
	}
	t.publishRewrites() // before what is settled of them
	for b, marks := range t.settled {
		l.publishMarks(b, marks)
	}
	t.unpin()
	for ls := range t.touched {
		ls.stored, ls.stale = ls.holds(), false
	}
	t.publishLedger()
	t.publishLogs()
	for _, b := range t.made {
		l.publishBlock(b, t.now)
	}
	l.signer.noted(t)
	for _, tn := range t.tenants { // one may have got nothing, since a group was elsewhere
		l.counted(tn, 0)
	}
}

func (l *loop) publishMarks(b *block, marks *bitmap) {
	tn := l.tenantOf(b.key)
	q := tn.q
	before, after := b.settled.count(), marks.count()
	if q.total -= int64(after - before); q.total == 0 {
		clear(q.crowd)
	}
	l.counted(tn, int64(before-after))
	q.bytes -= b.remaining(before) - b.remaining(after)
	b.settled = *marks
	if after == b.n {
		l.signer.left++
	}
	l.blocks.release(b)
}

func (l *loop) publishBlock(b *builder, now int64) {
	q, tn := b.q, b.q.tenantOf(b.key)
	n := len(b.recs)
	tn.total += int64(n)
	q.total += int64(n)
	q.bytes += int64(len(b.data))
	q.hold.sent(b.sentAt, int64(n-len(b.delayed)))
	blk := &block{key: b.key, n: n, sentAt: b.sentAt, bytes: int64(len(b.data)), jobs: b.jobs, data: b.data, recs: b.recs}
	for _, r := range b.delayed {
		tn.delay(r.due, now)
		if r.group != 0 { // its group's order lets the lane come to it first
			blk.noted.set(r.idx)
			continue
		}
		blk.skip.set(r.idx)
		tn.putLater(l, r)
	}
	tn.lane(b.key).push(l, blk)
	q.enter(tn)
	l.dedup.add(seqOf(b.key), b.hashes, b.sentAt+b.longest)
	l.touch(q)
}
