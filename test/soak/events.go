//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"
)

// eventBook is what was acknowledged of events, by id.
type eventBook struct {
	acked  map[string]string   // the user
	poison map[string]struct{} // that no database takes
	bad    map[string]struct{} // answered as rejected
	placed map[string]int      // the place among those of its user
}

func newEventBook() eventBook {
	return eventBook{acked: map[string]string{}, poison: map[string]struct{}{}, bad: map[string]struct{}{}, placed: map[string]int{}}
}

// event is one that is sent.
type event struct {
	id, user    string
	place       int
	bad, poison bool
}

// ackEvents notes events that the server has taken, or refused one by one.
func (b *book) ackEvents(events []event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range events {
		switch {
		case e.bad:
			b.events.bad[e.id] = struct{}{}
			b.counts.EventsBad++
		case e.poison:
			b.events.poison[e.id] = struct{}{}
			b.counts.EventsPoison++
			b.counts.EventsAcked++
		default:
			b.events.acked[e.id] = e.user
			b.events.placed[e.id] = e.place
			b.counts.EventsAcked++
		}
	}
}

// row is one of the table, in the order of the transactions that wrote them.
type row struct {
	id, user, tx string
}

// missing tells how many acknowledged events are not among the rows.
func (b *book) missing(rows []row) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	there := make(map[string]struct{}, len(rows))
	for _, r := range rows {
		there[r.id] = struct{}{}
	}
	for id := range b.events.acked {
		if _, ok := there[id]; !ok {
			n++
		}
	}
	return n
}

// judgeEvents compares the table, the dead letters and the bad rows of a round with what was
// acknowledged.
func (b *book) judgeEvents(rows []row, dead, bad map[string]int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	count := map[string]int{}
	for _, r := range rows {
		count[r.id]++
		if _, is := b.events.poison[r.id]; is {
			b.find(now, "events", r.id, "the database has a row that it refuses")
		}
	}
	b.counts.RowsChecked += len(rows)
	few := func(rule string, ids []string, format string, args ...any) {
		slices.Sort(ids)
		for _, id := range ids[:min(len(ids), 5)] {
			b.find(now, rule, id, format+fmt.Sprintf(" (one of %d)", len(ids)), args...)
		}
	}
	var lost, doubled, undead, unbad []string
	for id := range b.events.acked {
		switch n := count[id]; {
		case n == 0 && dead[id] == 0:
			lost = append(lost, id)
		case n > 1:
			doubled = append(doubled, id)
		}
	}
	for id := range b.events.poison {
		if dead[id] != 1 {
			undead = append(undead, id)
		}
	}
	for id := range b.events.bad {
		if bad[id] == 0 {
			unbad = append(unbad, id)
		}
	}
	few("lost", lost, "the event was acknowledged, and is neither a row nor a dead letter")
	few("events", doubled, "the event has several rows")
	few("lost", undead, "the event that the database refuses is not a dead letter once")
	few("lost", unbad, "the event was answered as rejected, and is no bad row")
	b.judgeRows(rows, now)
}

// judgeRows: a user's events were written in the order in which they were taken. Those of one
// transaction appear at once.
func (b *book) judgeRows(rows []row, now time.Time) {
	type last struct {
		place, before int // the highest of this transaction, and of those before
		tx            string
	}
	users := map[string]*last{}
	for _, r := range rows {
		place, known := b.events.placed[r.id]
		if !known {
			continue
		}
		l := users[r.user]
		if l == nil {
			l = &last{place: -1, before: -1}
			users[r.user] = l
		}
		if l.tx != r.tx {
			l.before, l.tx = l.place, r.tx
		}
		b.counts.OrdersChecked++
		if place < l.before {
			b.find(now, "order", r.id, "the event of %s was written after a later one of its user (%d)", r.user, l.before)
			return
		}
		l.place = max(l.place, place)
	}
}

// undead tells how many of those that the database refuses are not dead letters yet.
func (b *book) undead(dead map[string]int) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.events.poison {
		if dead[id] == 0 {
			n++
		}
	}
	return n
}
