package sqlite

import "slices"

const (
	historyRecent      = 1024    // rows in memory
	historyRecentBytes = 4 << 20 // of them
)

// history is what memory holds of it: the newest rows, and how to wait for more.
type history struct {
	epoch   string
	next    int64         // seq
	kept    int64         // seqs below it are reserved in the store
	gone    int64         // seq of the last event that has left
	pending events        // what claims and timers noted; the next commit takes them
	recent  []*historyRow // oldest first, the newest of the store
	bytes   int           // of recent
	room    int           // what the last rows took, about: to begin with for the next
	more    chan struct{} // closed when there is more

	total, stored int64 // events and bytes in the store
}

// record notes an event of this transaction.
func (t *tx) record(n *note) { t.events.add(n, t.l.history.room) }

// recordLater notes an event that no call has brought, for the commit that comes next.
func (h *history) recordLater(n *note) { h.pending.add(n, h.room) }

// writeHistory stores the events of the transaction, behind those that no call has
// brought.
func (t *tx) writeHistory() error {
	h := &t.l.history
	for _, rows := range [...]events{h.pending, t.events} {
		for _, row := range rows {
			row.seq, row.at = t.eventSeq, t.now
			t.eventSeq += int64(row.n)
			row.seal()
			err := t.exec("INSERT INTO history (seq, n, at, bytes, jobs, data) VALUES (?, ?, ?, ?, ?, ?)",
				row.seq, int64(row.n), row.at, int64(row.size()), row.jobs, row.data)
			if err != nil {
				return err
			}
			t.written = append(t.written, row)
		}
	}
	if len(t.written) > 0 {
		n, bytes := h.with(t.written)
		n, bytes = n-t.historyLess.n, bytes-t.historyLess.bytes
		if err := t.exec("UPDATE history_state SET n = ?, bytes = ?", n, bytes); err != nil {
			return err
		}
	}
	return t.reserve("event_seq", t.eventSeq, h.kept)
}

// reserve keeps numbers below a mark in the store ahead of their use, so that none
// is used twice after a crash: half of them are left when the mark is moved.
func (t *tx) reserve(name string, next, kept int64) error {
	if keptAfter(next, kept) == kept {
		return nil
	}
	return t.exec("INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2", name, keptAfter(next, kept))
}

// keptAfter is the mark that reserve sets.
func keptAfter(next, kept int64) int64 {
	if next <= kept-seqsAhead/2 {
		return kept
	}
	return next + seqsAhead
}

// with is what the history holds together with more rows.
func (h *history) with(rows []*historyRow) (n, bytes int64) {
	n, bytes = h.total, h.stored
	for _, row := range rows {
		n += int64(row.n)
		bytes += int64(row.size())
	}
	return n, bytes
}

// dropped takes note of what has left.
func (h *history) dropped(d *historyDrop) {
	if d.n == 0 {
		return
	}
	h.gone = max(h.gone, d.gone)
	h.total -= d.n
	h.stored -= d.bytes
	drop := 0
	for drop < len(h.recent) && h.recent[drop].seq <= h.gone {
		h.bytes -= h.recent[drop].size()
		drop++
	}
	h.recent = slices.Delete(h.recent, 0, drop)
}

// publish makes the written rows visible.
func (h *history) publish(t *tx) {
	h.kept = keptAfter(t.eventSeq, h.kept)
	h.next = t.eventSeq
	if len(t.written) == 0 {
		return
	}
	h.pending = nil
	h.total, h.stored = h.with(t.written)
	for _, row := range t.written {
		h.bytes += row.size()
		h.room = (3*h.room + len(row.data)*5/4) / 4
	}
	h.recent = append(h.recent, t.written...)
	drop := 0
	for len(h.recent)-drop > historyRecent || h.bytes > historyRecentBytes && len(h.recent)-drop > 1 {
		h.bytes -= h.recent[drop].size()
		drop++
	}
	if drop > 0 {
		h.recent = slices.Delete(h.recent, 0, drop)
	}
	close(h.more)
	h.more = make(chan struct{})
}
