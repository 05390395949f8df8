package sqlite

import (
	"encoding/json"
	"errors"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// freshBlock is a block that has no signature of what it says now.
type freshBlock struct{ seq, lane int64 }

// readFresh adds blocks to a draft. end: there are no more.
func (s *signer) readFresh(l *loop, d *draft, now int64) (end bool, err error) {
	var next []freshBlock
	err = l.db.each("SELECT seq, lane FROM fresh WHERE seq > ? OR seq <= ? ORDER BY seq LIMIT ?", func(st *sqlite.Stmt) error {
		next = append(next, freshBlock{st.ColumnInt64(0), st.ColumnInt64(1)})
		return nil
	}, d.last, s.signed[signLive], int64(signStepRows))
	if err != nil {
		return false, err
	}
	if len(next) > 0 && next[0].seq <= s.signed[signLive] { // it was written anew
		return false, s.signAgain(l, next[0])
	}
	jobs, bytes := d.jobs+signStepJobs, d.bytes+signStepBytes
	n, gone := 0, [][2]int64(nil)
	for ; n < len(next) && !d.full() && d.jobs < jobs && d.bytes < bytes; n++ {
		f := next[n]
		b, err := l.blockData(blockKey(f.lane, f.seq))
		switch {
		case err != nil:
			return false, err
		case b == nil && len(gone) > 0 && gone[len(gone)-1][1] == d.last:
			gone[len(gone)-1][1] = f.seq
		case b == nil:
			gone = append(gone, [2]int64{f.seq, f.seq})
		case b.sentAt > now-signDelay:
			d.waits = true
		default:
			d.block(l, f, b)
		}
		if d.waits {
			break
		}
		d.last = f.seq
	}
	err = l.between(func(t *tx) error {
		for _, g := range gone {
			if err := t.dropFresh(g[0], g[1]); err != nil {
				return err
			}
		}
		return nil
	})
	return n == len(next) && n < signStepRows, err
}

// dropFresh drops the rows of blocks that are gone, or have a signature.
func (t *tx) dropFresh(from, to int64) error {
	return t.exec("DELETE FROM fresh WHERE seq >= ? AND seq <= ?", from, to)
}

// blockData reads a block that may not be in memory, and leaves memory as it is; nil: it is gone.
func (l *loop) blockData(key int64) (b *block, err error) {
	if l.unreadable[key] {
		return nil, nil
	}
	if b := l.blocks.byKey[key]; b != nil && b.data != nil {
		return b, nil
	}
	err = l.db.each("SELECT n, sent_at FROM block WHERE key = ?", func(st *sqlite.Stmt) error {
		if n := int(st.ColumnInt64(0)); n > 0 && n <= blockMessages {
			b = &block{key: key, n: n, sentAt: st.ColumnInt64(1)}
		}
		return nil
	}, key)
	if b == nil || err != nil {
		return nil, err
	}
	if b.data, err = l.stored(key); err == nil {
		b.recs, _ = records(b.data, b.n)
	}
	return b, err
}

// block adds the jobs of a block.
func (d *draft) block(l *loop, f freshBlock, b *block) {
	if len(d.spans) == 0 {
		d.first = f.seq
	}
	d.cover(f.lane, f.seq)
	d.bytes += len(b.data)
	d.jobs += d.bodies(l, f, b)
	d.since, d.until = min(d.since, b.sentAt), max(d.until, b.sentAt)
}

// bodies adds the terms of a block's jobs, and counts these.
func (s *terms) bodies(l *loop, f freshBlock, b *block) (jobs int) {
	queue := l.queueName(blockKey(f.lane, f.seq))
	for i := range b.n {
		body := b.body(i)
		if !isJob(body) {
			continue
		}
		jobs++
		if m, err := decodeBody(body, queue); err == nil {
			s.job(&m)
		}
	}
	return jobs
}

var errNoSignature = errors.New("BUG: no signature covers a block that had one")

// signAgain adds what a block says now to the signature that covers it.
func (s *signer) signAgain(l *loop, f freshBlock) error {
	b, err := l.blockData(blockKey(f.lane, f.seq))
	if err != nil {
		return err
	}
	return l.between(func(t *tx) error {
		if b != nil {
			if err := t.addToSignature(f, b); err != nil {
				return err
			}
		}
		return t.dropFresh(f.seq, f.seq)
	})
}

func (t *tx) addToSignature(f freshBlock, b *block) error {
	at, open, bits := int64(0), int64(0), []byte(nil)
	err := t.l.db.each("SELECT at, open, bits FROM sig WHERE at >= ? ORDER BY at LIMIT 1", func(st *sqlite.Stmt) error {
		at, open, bits = st.ColumnInt64(0), st.ColumnInt64(1), columnBytes(st, 2)
		return nil
	}, int64(signLive)<<signShift|f.seq)
	if err != nil {
		return err
	}
	if at>>signShift != signLive || len(bits) == 0 {
		return errNoSignature
	}
	more := terms{set: map[uint64]struct{}{}}
	more.bodies(t.l, f, b)
	for h := range more.set {
		addBloom(bits, h)
	}
	if more.open {
		open = 1
	}
	return t.exec("UPDATE sig SET open = ?, bits = ? WHERE at = ?", open, bits, at)
}

// readDead adds dead letters to a draft.
func (s *signer) readDead(l *loop, d *draft) (end bool, err error) {
	rows, bytes := 0, d.bytes+signStepBytes
	err = l.db.each("SELECT seq, queue, sent_at, cause, failures, body FROM dead WHERE seq > ? ORDER BY seq LIMIT ?", func(st *sqlite.Stmt) error {
		if d.full() || d.bytes >= bytes {
			return errStop
		}
		rows++
		d.row(st.ColumnInt64(0))
		d.jobs++ // also one that is none: it is to be read like one
		body := columnBytes(st, 5)
		d.bytes += len(body)
		q := l.byID[st.ColumnInt64(1)]
		if q == nil || !isJob(body) {
			return nil
		}
		if m, err := decodeBody(body, q.name); err == nil {
			d.job(&m)
		}
		var cause forebay.Cause
		_ = json.Unmarshal([]byte(st.ColumnText(3)), &cause) // who reads it says so
		d.code(&cause, decodeFailures(st.ColumnText(4)))
		d.sent(st.ColumnInt64(2))
		return nil
	}, d.last, int64(signStepJobs))
	if err == errStop {
		err = nil
	}
	return err == nil && rows < signStepJobs && !d.full() && d.bytes < bytes, err
}

// readFinished adds finished jobs to a draft.
func (s *signer) readFinished(l *loop, d *draft) (end bool, err error) {
	rows, jobs, bytes := 0, d.jobs+signStepJobs, d.bytes+signStepBytes
	err = l.db.each("SELECT seq, queue, states, data FROM finished WHERE seq > ? ORDER BY seq LIMIT ?", func(st *sqlite.Stmt) error {
		if d.full() || d.jobs >= jobs || d.bytes >= bytes {
			return errStop
		}
		rows++
		d.row(st.ColumnInt64(0))
		q := l.byID[st.ColumnInt64(1)]
		if q == nil {
			return nil
		}
		data := columnBytes(st, 3)
		d.bytes += len(data)
		recs, _ := records(data, st.ColumnLen(2))
		for _, r := range recs {
			if r[1] > 0 {
				d.finished(data[r[0]:r[1]], q.name)
			}
		}
		return nil
	}, d.last, int64(signStepRows))
	if err == errStop {
		err = nil
	}
	return err == nil && rows < signStepRows && !d.full() && d.jobs < jobs && d.bytes < bytes, err
}

func (d *draft) row(seq int64) {
	if d.first == 0 {
		d.first = seq
	}
	d.last = seq
}

// finished adds a finished job. Its times and causes alone are read besides its body.
func (d *draft) finished(record []byte, queue string) {
	r := reader{b: record}
	r.byte()
	r.byte()
	r.uvarint()
	r.uvarint()
	sentAt := r.varint()
	r.varint()
	why, failures := r.bytes(), r.bytes()
	r.bytes()
	r.bytes()
	d.jobs++
	d.sent(sentAt)
	if r.bad {
		return
	}
	if m, err := decodeBody(r.b, queue); err == nil {
		d.job(&m)
	}
	if len(why)+len(failures) > 0 {
		var cause forebay.Cause
		_ = json.Unmarshal(why, &cause)
		d.code(&cause, decodeFailures(string(failures)))
	}
}
