package enginetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
)

// replay sends a dead letter again; discard removes it. False: no such one.
func (o *oracle) replay(seq int64, now time.Time) bool {
	i := slices.IndexFunc(o.letters, func(l forebay.DeadLetter) bool { return l.Seq == seq })
	if i < 0 {
		return false
	}
	l := o.letters[i]
	o.letters = slices.Delete(o.letters, i, i+1)
	if r := o.records["id "+l.Message.ID]; r != nil {
		r.later = now.Add(cmp.Or(l.Message.DedupWindow, forebay.DefaultDedupWindow))
	}
	o.seq++
	delete(o.dead, seq)
	e := &entry{msg: l.Message, seq: o.seq, sentAt: now, heldUntil: now.Add(o.delays[l.Message.Queue]), replayed: true}
	o.entries = append(o.entries, e)
	o.note(e, forebay.HistoryReplayed, forebay.StateWaiting, now, nil)
	return true
}

func (o *oracle) discard(seq int64, now time.Time) bool { return o.endDead(seq, "", nil, now) }

// endDead removes a dead letter; next takes its place.
func (o *oracle) endDead(seq int64, reason string, next *forebay.Message, now time.Time) bool {
	n := len(o.letters)
	if j, ok := o.dead[seq]; ok {
		typ := forebay.HistoryDiscarded
		if next != nil {
			typ, reason = forebay.HistoryReplayed, "as job "+next.ID
		}
		o.note(&entry{msg: j.Message}, typ, "", now, func(ev *forebay.HistoryEvent) { ev.Text = reason })
		delete(o.dead, seq)
	}
	o.letters = slices.DeleteFunc(o.letters, func(l forebay.DeadLetter) bool {
		if l.Seq == seq {
			for _, name := range recordNames(l.Message) {
				if r := o.records[name]; r != nil && r.id == l.Message.ID {
					r.loose = true
				}
			}
		}
		return l.Seq == seq
	})
	return len(o.letters) < n
}

// uncharge takes back what bury will charge, and the hand-out, of what nobody began.
func (e *entry) uncharge(s forebay.Settlement) {
	if s.Unbegun {
		e.attempts--
		e.deliveries--
	}
}
