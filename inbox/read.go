package inbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// Page is a part of an inbox, oldest first.
type Page struct {
	Messages []Message `json:"messages"`
	Unread   int       `json:"unread"`          // of all
	Next     string    `json:"next"`            // the place to go on after
	More     bool      `json:"more"`            // there is more after Next
	Reset    bool      `json:"reset,omitempty"` // the place asked for means nothing here: it begins anew
}

// Newest gives the newest messages, as many as fit in a page of limit.
func (b *Inbox) Newest(ctx context.Context, user string, limit int) (Page, error) {
	if err := checkUser(user); err != nil {
		return Page{}, err
	}
	l, _, err := b.load(ctx, user)
	if err != nil {
		return Page{}, err
	}
	entries := l.Entries[max(0, len(l.Entries)-pageSize(limit)):]
	return b.page(ctx, user, l, entries)
}

// After gives the messages after a place; "0" is the beginning.
func (b *Inbox) After(ctx context.Context, user, place string, limit int) (Page, error) {
	if err := checkUser(user); err != nil {
		return Page{}, err
	}
	at, err := parsePlace(place)
	if err != nil {
		return Page{}, err
	}
	l, _, err := b.load(ctx, user)
	if err != nil {
		return Page{}, err
	}
	reset := at.seq > 0 && (at.epoch != l.Epoch || at.seq > l.Seq)
	if reset {
		at.seq = 0
	}
	entries := l.after(at.seq)
	page, err := b.page(ctx, user, l, entries[:min(len(entries), pageSize(limit))])
	page.More = len(entries) > pageSize(limit)
	page.Reset = reset
	return page, err
}

func pageSize(limit int) int {
	if limit <= 0 {
		return MaxPage / 2
	}
	return min(limit, MaxPage)
}

func (l *list) after(seq int64) []entry {
	i, _ := slices.BinarySearchFunc(l.Entries, seq+1, func(e entry, seq int64) int { return int(e.Seq - seq) })
	return l.Entries[i:]
}

// page reads what entries name. What has left since is left out.
func (b *Inbox) page(ctx context.Context, user string, l list, entries []entry) (Page, error) {
	p := Page{Messages: []Message{}, Unread: l.unread(), Next: place{l.Epoch, l.Seq}.String()}
	for _, e := range entries {
		p.Next = place{l.Epoch, e.Seq}.String()
		d, err := b.cfg.Documents.Document(ctx, messageCollection, keyOf(user, e.ID))
		if forebay.CodeOf(err) == forebay.CodeNotFound {
			continue
		}
		if err != nil {
			return Page{}, err
		}
		p.Messages = append(p.Messages, Message{
			ID: e.ID, Place: p.Next, At: time.UnixMilli(e.At).UTC(), Read: e.Read, Message: d.Value,
		})
	}
	return p, nil
}

// place is where a reader is: the number of the last message that it has.
type place struct {
	epoch string
	seq   int64
}

func (p place) String() string { return fmt.Sprintf("%s-%d", p.epoch, p.seq) }

func parsePlace(text string) (place, error) {
	if text == "0" {
		return place{}, nil
	}
	epoch, number, ok := strings.Cut(text, "-")
	seq, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || seq < 0 || epoch == "" || len(epoch) > 16 {
		return place{}, invalid("after", "it is no place in an inbox; allowed is 0, or what an answer or event gave")
	}
	return place{epoch, seq}, nil
}
