package inbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// list is the document of a user.
type list struct {
	Epoch   string  `json:"epoch"` // of its numbers: a list that begins anew has another one
	Seq     int64   `json:"seq"`   // of the newest, also when that has left
	Entries []entry `json:"entries"`
}

type entry struct {
	Seq  int64  `json:"seq"`
	ID   string `json:"id"`
	At   int64  `json:"at"` // Unix milliseconds
	Read bool   `json:"read,omitempty"`
}

func (l *list) has(id string) bool {
	for _, e := range l.Entries {
		if e.ID == id {
			return true
		}
	}
	return false
}

func (l *list) unread() int {
	n := 0
	for _, e := range l.Entries {
		if !e.Read {
			n++
		}
	}
	return n
}

// keyOf is the key of a message's document. Users and ids may be of any form.
func keyOf(user, id string) string {
	sum := sha256.Sum256([]byte(user + "\x00" + id))
	return hex.EncodeToString(sum[:])
}

// load reads the list of a user, without what has expired.
func (b *Inbox) load(ctx context.Context, user string) (l list, rev int64, err error) {
	d, err := b.cfg.Documents.Document(ctx, listCollection, user)
	switch {
	case forebay.CodeOf(err) == forebay.CodeNotFound:
		return list{Epoch: strings.ToLower(rand.Text()[:8])}, 0, nil
	case err != nil:
		return l, 0, err
	}
	if err := json.Unmarshal(d.Value, &l); err != nil {
		return l, 0, forebay.Errorf(forebay.CodeDamaged, "inbox", "the list of %q cannot be read: %w", user, err)
	}
	oldest := b.now().Add(-b.cfg.Keep).UnixMilli()
	for len(l.Entries) > 0 && l.Entries[0].At <= oldest {
		l.Entries = l.Entries[1:]
	}
	return l, d.Rev, nil
}

// change changes the list of a user; do may be called again, on a fresh list. The
// messages that do says are gone are dropped after.
func (b *Inbox) change(ctx context.Context, user string, do func(*list) (changed bool, gone []string, err error)) (l list, changed bool, err error) {
	lock := b.locks[maphash.String(b.seed, user)%stripes]
	select {
	case lock <- struct{}{}:
		defer func() { <-lock }()
	case <-ctx.Done():
		return l, false, context.Cause(ctx)
	}
	for range maxTries {
		var rev int64
		if l, rev, err = b.load(ctx, user); err != nil {
			return l, false, err
		}
		changed, gone, err := do(&l)
		if err != nil || !changed {
			return l, false, err
		}
		value, err := json.Marshal(l)
		if err != nil {
			return l, false, err
		}
		_, err = b.cfg.Documents.PutDocument(ctx, engine.Document{
			Collection: listCollection, Key: user, Rev: rev, Value: value, Expires: b.now().Add(b.cfg.Keep),
		})
		switch forebay.CodeOf(err) {
		case "":
			b.drop(ctx, user, gone)
			return l, true, nil
		case forebay.CodeConflict: // another process was first
			continue
		}
		return l, false, err
	}
	return l, false, forebay.Errorf(forebay.CodeUnavailable, "inbox", "the inbox of %q is changed by too many at once", user)
}

// drop removes messages that no list names. One that stays leaves by its time.
func (b *Inbox) drop(ctx context.Context, user string, ids []string) {
	for _, id := range ids {
		_ = b.cfg.Documents.DeleteDocument(ctx, messageCollection, keyOf(user, id), engine.AnyRev)
	}
}
