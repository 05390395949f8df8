package sqlite

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// Every message sent leaves an entry in the dedup row of its block: the digest of
// its id (and of its dedup key) and a fingerprint of its payload. Memory holds a
// table from digests to block seqs, in generations; a hit is checked against the
// full digest in the store, so that a collision never drops a message.

// digest stands for an id or a dedup key. It is cut from SHA-256, since ids come
// from strangers who might look for collisions. Zero: cleared.
type digest [16]byte

func idDigest(id string) digest {
	var buf [1 + forebay.MaxIDBytes]byte
	return sum(append(append(buf[:0], 'i'), id...))
}

func keyDigest(key string) digest {
	var buf [1 + forebay.MaxIDBytes]byte
	return sum(append(append(buf[:0], 'k'), key...))
}

// queueKeyDigest is for jobs, whose keys are those of their queue.
func queueKeyDigest(queue, key string) digest {
	var buf [2 + forebay.MaxQueueBytes + forebay.MaxIDBytes]byte
	return sum(append(append(append(append(buf[:0], 'q'), queue...), 0), key...))
}

func sum(b []byte) (d digest) {
	s := sha256.Sum256(b)
	copy(d[:], s[:])
	return d
}

// entry is what is known of a message that was sent.
type entry struct {
	id     digest
	print  uint64 // of the payload
	window int64  // 0: the engine's retention
	hasKey bool
	key    digest
	name   string // the id itself, where a dedup key can lead to it
	sentAt int64

	replaced bool // its payload, by the message that met it
}

// entryBytes is the size of an entry without a key, if its window is not a long one.
const entryBytes = 16 + 8 + 1

func (n entry) append(b []byte) []byte {
	b = append(b, n.id[:]...)
	b = binary.LittleEndian.AppendUint64(b, n.print)
	more := uint64(n.window) << 1
	if !n.hasKey {
		return binary.AppendUvarint(b, more)
	}
	b = binary.AppendUvarint(b, more|1)
	b = append(b, n.key[:]...)
	return appendString(b, n.name)
}

// eachEntry calls f for the entries of a dedup row, until it returns false.
// It tells whether the row was whole.
func eachEntry(ids []byte, f func(i int, n *entry) bool) bool {
	r := reader{b: ids}
	for i := 0; len(r.b) > 0; i++ {
		var n entry
		copy(n.id[:], r.take(16))
		n.print = r.u64()
		more := r.uvarint()
		n.window = int64(more >> 1)
		if n.hasKey = more&1 != 0; n.hasKey {
			copy(n.key[:], r.take(16))
			n.name = r.string()
		}
		if r.bad {
			return false
		}
		if !f(i, &n) {
			return true
		}
	}
	return true
}

// generation is an open-addressed table from digests to the seqs of blocks that
// were sent one after the other. A slot packs 24 bits of the digest above the 40
// bits of a seq: 8 bytes an id, nothing for the garbage collector to follow.
type generation struct {
	slots       []uint64
	n           int
	filter      *dedupFilter // of a large one
	bit         byte         // its own there
	first, last int64        // seqs
	swept       int64        // seqs below it have lost their rows
	kept        bool         // some rows were left, since their messages are stored
	expires     int64        // when the last entry has run out

	moved []int64 // seqs of older blocks, of which something was still stored when their generation went
	saved int     // entries that went on to the newest generation
}

const (
	smallGeneration = 1 << 16
	largeGeneration = 1 << 20
	growGeneration  = 4 // times as large as the one before: few that are small are asked each
)

func (g *generation) full() bool { return g.n >= len(g.slots)*3/4 }

func slotOf(d digest, n int) (i int, tag uint64) {
	return int(binary.LittleEndian.Uint64(d[:]) & uint64(n-1)), uint64(d[8])<<56 | uint64(d[9])<<48 | uint64(d[10])<<40
}

func (g *generation) add(d digest, seq int64) {
	i, tag := slotOf(d, len(g.slots))
	for g.slots[i] != 0 {
		i = (i + 1) & (len(g.slots) - 1)
	}
	g.slots[i] = tag | uint64(seq)
	g.n++
	if g.filter != nil {
		g.filter.add(&d, g.bit)
	}
}

// find calls f with the seqs of the blocks that d may be in.
func (g *generation) find(d digest, f func(seq int64)) {
	if g.filter != nil && !g.filter.has(&d, g.bit) {
		return
	}
	i, tag := slotOf(d, len(g.slots))
	for ; g.slots[i] != 0; i = (i + 1) & (len(g.slots) - 1) {
		if g.slots[i]&^seqMask == tag {
			f(int64(g.slots[i] & seqMask))
		}
	}
}

// dedup is the table in memory.
type dedup struct {
	gens  []*generation // oldest first
	n     int
	max   int
	timer timer

	ids     []digest // those of fetchSent
	fetched uint64   // a use of what fetch has read
}

func (d *dedup) add(seq int64, hashes []digest, expires int64) { d.addTo(seq, seq, hashes, expires) }

// addTo adds entries of a block to the generation that the seq last belongs to.
func (d *dedup) addTo(last, seq int64, hashes []digest, expires int64) {
	for _, h := range hashes {
		if h == (digest{}) {
			continue
		}
		g := d.newest(last)
		g.add(h, seq)
		g.last = max(g.last, last)
		g.expires = max(g.expires, expires)
		d.n++
	}
}

func (d *dedup) newest(seq int64) *generation {
	size := smallGeneration
	if n := len(d.gens); n > 0 {
		g := d.gens[n-1]
		if !g.full() {
			return g
		}
		size = min(growGeneration*len(g.slots), largeGeneration)
	}
	g := &generation{slots: make([]uint64, size), first: seq, last: seq, swept: seq}
	if size == largeGeneration {
		d.filtered(g)
	}
	d.gens = append(d.gens, g)
	return g
}

// found is where an entry was found.
type found struct {
	entry
	key int64 // of its block
	idx int
}

// lookup finds the newest entry of an id, or of a dedup key.
func (l *loop) lookup(d digest, isKey bool) (newest found, ok bool, err error) {
	gens := l.dedup.gens
	for i := len(gens) - 1; i >= 0 && err == nil; i-- {
		if ok && seqOf(newest.key) >= gens[i+1].first { // not one that was moved there
			break
		}
		gens[i].find(d, func(seq int64) {
			if ok && seq <= seqOf(newest.key) || err != nil {
				return
			}
			var hit found
			var is bool
			if hit, is, err = l.entryIn(seq, d, isKey); is {
				newest, ok = hit, true
			}
		})
	}
	return newest, ok, err
}

// entryIn looks for a digest in the dedup row of a block.
func (l *loop) entryIn(seq int64, d digest, isKey bool) (hit found, ok bool, err error) {
	err = l.db.each("SELECT lane, at, ids FROM dedup WHERE seq = ?", func(s *sqlite.Stmt) error {
		ids := columnBytes(s, 2)
		if !bytes.Contains(ids, d[:]) {
			return nil
		}
		lane, at := s.ColumnInt64(0), s.ColumnInt64(1)
		eachEntry(ids, func(i int, n *entry) bool {
			if !isKey && n.id == d || isKey && n.hasKey && n.key == d {
				n.sentAt = at
				hit, ok = found{*n, blockKey(lane, seq), i}, true
			}
			return !ok
		})
		return nil
	}, seq)
	return hit, ok, err
}

// alive tells whether a found entry still makes a duplicate of its id: its window
// is not over, or its message is there and this transaction does not end it, be it as
// a dead letter.
func (t *tx) alive(hit found, id string) (bool, error) {
	if t.now-hit.sentAt < t.l.window(hit.window) {
		return true, nil
	}
	stored, err := t.isStored(hit.key, hit.idx)
	if stored || err != nil {
		return stored, err
	}
	n, err := t.l.db.int("SELECT 1 FROM dead WHERE id = ? LIMIT 1", id)
	return n > 0, err
}

func (l *loop) window(w int64) int64 {
	if w == 0 {
		return int64(l.e.cfg.DedupRetention)
	}
	return w
}

// duplicate finds the earlier message that has the id or the key of m, if any.
func (t *tx) duplicate(m *encoded) (*entry, error) {
	first, err := t.first(m.id, false, m.name)
	if first != nil || err != nil || !m.hasKey {
		return first, err
	}
	if m.job != nil {
		return t.sameKey(m)
	}
	return t.first(m.key, true, "")
}

// first finds the message that holds an id or a dedup key. Entries of ids do not
// name them, since whoever asks knows the name.
func (t *tx) first(d digest, isKey bool, name string) (*entry, error) {
	if i, ok := t.ids[d]; ok {
		return &t.entries[i], nil
	}
	hit, ok, err := t.l.lookup(d, isKey)
	if !ok || err != nil {
		return nil, err
	}
	if !isKey {
		hit.name = name
	}
	alive, err := t.alive(hit, hit.name)
	if !alive || err != nil {
		return nil, err
	}
	n := hit.entry // a copy, so that only what is found costs an allocation
	return &n, nil
}

// remember makes m known to later messages of the same transaction.
func (t *tx) remember(m *encoded, n entry, b *builder) {
	if t.ids == nil {
		t.ids = make(map[digest]int, t.count)
		t.entries = make([]entry, 0, t.count)
	}
	n.name = m.name
	t.ids[m.id] = len(t.entries)
	if m.hasKey {
		t.ids[m.key] = len(t.entries)
	}
	t.entries = append(t.entries, n)
	if m.job != nil && m.hasKey {
		if t.keyed == nil {
			t.keyed = map[digest]builtAt{}
		}
		t.keyed[m.key] = builtAt{b, len(b.recs) - 1}
	}
}

const (
	sweepSeqs  = 1000      // blocks whose dedup rows one cycle removes
	sweepAgain = time.Hour // until a generation with stored messages is looked at again
)

// trim forgets what ran out, and what is beyond the bound, in slices: each cycle
// removes the rows of sweepSeqs blocks, and the timer brings the next cycle.
func (d *dedup) trim(l *loop, now int64) {
	if len(d.gens) == 0 {
		return
	}
	g := d.gens[0]
	over := d.n > d.max && len(d.gens) > 1
	if g.expires > now && !over {
		if d.timer.i == 0 {
			l.timers.set(&d.timer, g.expires)
		}
		return
	}
	last := g.last
	if len(d.gens) > 1 {
		last = min(last, d.gens[1].first-1) // a block on the border belongs to the next
	}
	to := min(g.swept+sweepSeqs, last)
	if err := d.sweep(l, g, to, over); err != nil {
		l.timers.set(&d.timer, now+int64(time.Second))
		return
	}
	g.swept = to + 1
	l.timers.set(&d.timer, now)
	if to < last {
		return
	}
	if err := d.sweepMoved(l, g, over); err != nil {
		l.timers.set(&d.timer, now+int64(time.Second))
		return
	}
	if g.kept && !over {
		g.swept, g.kept, g.expires = g.first, false, now+int64(sweepAgain)
		l.timers.set(&d.timer, g.expires)
		return
	}
	if g.expires > now && g.n > g.saved {
		l.log.Warn("dedup: the oldest ids are forgotten before their window is over", "ids", g.n-g.saved, "bound", d.max)
	}
	d.drop()
}

// drop lets go of the oldest generation.
func (d *dedup) drop() {
	g := d.gens[0]
	if g.filter != nil {
		g.filter.clear(g.bit)
	}
	d.n -= g.n
	d.gens = d.gens[1:]
}

// sweep removes rows of a generation up to a seq, but for messages that are still
// stored: they stay known, in the newest generation if this one has to go.
func (d *dedup) sweep(l *loop, g *generation, to int64, over bool) error {
	if over {
		if err := d.save(l, g, g.swept, to); err != nil {
			return err
		}
	}
	kept, err := l.sweep(g.swept, to, !over || g.saved < g.n/2)
	g.kept = g.kept || kept
	return err
}

// sweepMoved does the same for older blocks.
func (d *dedup) sweepMoved(l *loop, g *generation, over bool) error {
	for len(g.moved) > 0 && (over || !g.kept) {
		seq := g.moved[len(g.moved)-1]
		if over {
			if err := d.save(l, g, seq, seq); err != nil {
				return err
			}
		}
		kept, err := l.sweep(seq, seq, !over || g.saved < g.n/2)
		if err != nil {
			return err
		}
		g.kept = g.kept || kept
		if kept && !over {
			return nil // all of them are looked at again with the generation
		}
		g.moved = g.moved[:len(g.moved)-1]
	}
	return nil
}

// save puts the entries of messages that are still stored into the newest generation,
// as long as they are less than half of what goes.
func (d *dedup) save(l *loop, g *generation, from, to int64) error {
	type row struct {
		seq, lane, at int64
		ids           []byte
	}
	var rows []row
	err := l.db.each(`SELECT seq, lane, at, ids FROM dedup WHERE seq BETWEEN ? AND ?
		AND EXISTS (SELECT 1 FROM block WHERE block.key = dedup.lane << 40 | dedup.seq)`, func(s *sqlite.Stmt) error {
		rows = append(rows, row{s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), columnBytes(s, 3)})
		return nil
	}, from, to)
	if err != nil {
		return err
	}
	for _, r := range rows {
		b, err := l.meta(blockKey(r.lane, r.seq))
		if err != nil {
			return err
		}
		if b == nil || g.saved >= g.n/2 {
			continue
		}
		var hashes []digest
		expires := int64(0)
		eachEntry(r.ids, func(i int, n *entry) bool {
			if i >= b.n || b.settled.has(i) {
				return true
			}
			hashes = append(hashes, n.id)
			if n.hasKey {
				hashes = append(hashes, n.key)
			}
			expires = max(expires, r.at+l.window(n.window))
			return true
		})
		g.saved += len(hashes)
		newest := d.gens[len(d.gens)-1]
		d.addTo(newest.last, r.seq, hashes, expires)
		newest = d.gens[len(d.gens)-1]
		newest.moved = append(newest.moved, r.seq)
	}
	return nil
}

// sweep removes the dedup rows of a range of blocks; those of which a message is
// still there, waiting or dead, may keep theirs.
func (l *loop) sweep(from, to int64, keepStored bool) (kept bool, err error) {
	if !keepStored {
		return false, l.db.exec("DELETE FROM dedup WHERE seq BETWEEN ? AND ?", from, to)
	}
	err = l.db.exec(`DELETE FROM dedup WHERE seq BETWEEN ? AND ?
		AND NOT EXISTS (SELECT 1 FROM block WHERE block.key = dedup.lane << 40 | dedup.seq)
		AND NOT EXISTS (SELECT 1 FROM dead WHERE dead.key = dedup.lane << 40 | dedup.seq)`, from, to)
	if err != nil {
		return false, err
	}
	n, err := l.db.int("SELECT 1 FROM dedup WHERE seq BETWEEN ? AND ? LIMIT 1", from, to)
	return n > 0, err
}
