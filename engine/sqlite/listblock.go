package sqlite

import "zombiezen.com/go/sqlite"

// liveBlock is what the loop tells of a block.
type liveBlock struct {
	key, sentAt int64
	q           *queue // its name alone is read outside of the loop
	n           int
	data        []byte
	recs        [][2]int32 // nil: to be found
	skip        bitmap     // settled, or leased
	again       map[int]liveAgain
}

type liveAgain struct {
	ref      ref
	failures string
}

// blocks looks at some of the blocks, and tells how many these were.
func (w *walk) blocks(keys []int64) (n int, err error) {
	type slice struct {
		blocks []liveBlock
		n      int
		now    int64
	}
	got, err := ask(w.ctx, w.e, func(t *tx) (slice, error) {
		got := slice{now: t.now}
		some := keys[:min(len(keys), sliceBlocks)]
		for bytes := 0; got.n < len(some) && bytes < sliceReads; got.n++ {
			b, err := t.l.liveBlock(some[got.n])
			if err != nil {
				return got, err
			}
			if b != nil && (w.filter.Queue == "" || b.q.name == w.filter.Queue) {
				got.blocks = append(got.blocks, *b)
				bytes += len(b.data)
			}
		}
		return got, nil
	})
	if err != nil {
		return 0, err
	}
	for i := range got.blocks {
		b := &got.blocks[i]
		w.reads += len(b.data) + blockReads
		if !w.block(b, got.now) {
			return i + 1, nil
		}
		w.pass(seqOf(b.key))
	}
	w.reads += 64 * got.n
	w.pass(seqOf(keys[got.n-1]))
	return got.n, nil
}

// block looks at the jobs of a block, and tells whether there is room for more.
func (w *walk) block(b *liveBlock, now int64) bool {
	if b.recs == nil {
		b.recs, _ = records(b.data, b.n)
	}
	for i := b.n - 1; i >= 0; i-- {
		r := b.recs[i]
		if b.skip.has(i) || r[1] == 0 || !w.at.before(seqOf(b.key), int64(i)) {
			continue
		}
		body := b.data[r[0]:r[1]:r[1]]
		if !isJob(body) || !w.sieve.may(body) {
			continue
		}
		live := liveJob{q: b.q, body: body, ref: ref{key: b.key, idx: i, sentAt: b.sentAt}}
		again, ok := b.again[i]
		if ok {
			live.ref = again.ref
		}
		job, err := live.job(again.failures, now)
		if err != nil {
			continue // it is damaged: what can be read is listed
		}
		if !w.see(&job, seqOf(b.key), int64(i)) {
			return false
		}
	}
	return true
}

// liveBlock reads a block; nil: it is gone, or cannot be read.
func (l *loop) liveBlock(key int64) (*liveBlock, error) {
	q := l.queueOf(key)
	b, err := l.blockData(key)
	if q == nil || b == nil || err != nil {
		return nil, err
	}
	live := &liveBlock{key: key, sentAt: b.sentAt, q: q, n: b.n, data: b.data, recs: b.recs}
	if known := l.blocks.byKey[key]; known != nil {
		live.skip = known.settled
	} else {
		err = l.db.each("SELECT settled FROM part WHERE key = ?", func(s *sqlite.Stmt) error {
			live.skip, err = marksOf(key, columnBytes(s, 0))
			return err
		}, key)
		if err != nil {
			return nil, err
		}
	}
	leased := l.leasedOf(key)
	live.skip.add(&leased)
	err = l.db.each("SELECT key, idx, due, ord, sent_at, attempts, deliveries, lim, started, failures FROM again WHERE key = ?", func(s *sqlite.Stmt) error {
		if live.again == nil {
			live.again = map[int]liveAgain{}
		}
		live.again[int(s.ColumnInt64(1))] = liveAgain{*readRef(s), s.ColumnText(9)}
		return nil
	}, key)
	return live, err
}
