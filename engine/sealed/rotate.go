package sealed

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
)

// Status tells by which keys a store is sealed.
type Status struct {
	Current  string    `json:"current,omitempty"` // the master key that seals; empty: nothing new is sealed
	Keys     []string  `json:"keys"`              // master keys that are given
	Carried  bool      `json:"carried"`           // each message carries its data key: there is nothing to rotate
	DataKeys []DataKey `json:"dataKeys"`          // the oldest first
	Old      int       `json:"old"`               // data keys that are sealed by another master key than the current one
}

// DataKey is one of those under which a store is sealed.
type DataKey struct {
	ID     string    `json:"id"`
	Master string    `json:"master"` // the master key that seals it
	Made   time.Time `json:"made"`
	Seals  bool      `json:"seals"` // what is stored now is sealed with it, here
}

// Status reads by which keys the store is sealed.
func (e *Engine) Status(ctx context.Context) (Status, error) {
	s := e.sealer
	st := Status{Current: s.keys.current, Keys: s.keys.IDs(), Carried: s.vault == nil, DataKeys: []DataKey{}}
	if s.vault == nil {
		return st, nil
	}
	all, err := s.vault.list(ctx)
	for _, k := range all {
		last, _ := s.vault.sealing()
		st.DataKeys = append(st.DataKeys, DataKey{docKey(k.id), k.Master, k.Made, s.seals() && k.id == string(last)})
		if k.Master != st.Current {
			st.Old++
		}
	}
	return st, err
}

// Rotate seals every data key by the current master key. What they seal stays as it is, and
// older master keys are needed no more. Each is done by itself: cut off, it is done again and
// goes on. told is called after each; nil: nobody is told.
func (e *Engine) Rotate(ctx context.Context, told func(done, of int)) (rotated int, err error) {
	v, current := e.sealer.vault, e.sealer.keys.current
	if v == nil {
		return 0, forebay.Errorf(forebay.CodeUnsupported, "sealed: rotate", "each message carries its own data key; there is nothing to rotate")
	}
	if current == "" {
		return 0, forebay.Errorf(forebay.CodeConflict, "sealed: rotate", "no key is current; nothing can be sealed")
	}
	all, err := v.list(ctx)
	if err != nil {
		return 0, err
	}
	for i := range all {
		changed, err := v.rewrap(ctx, &all[i])
		if err != nil {
			return rotated, coded(err)
		}
		if changed {
			rotated++
		}
		if told != nil {
			told(i+1, len(all))
		}
	}
	return rotated, nil
}

// rewrap seals one data key by the current master key.
func (v *vault) rewrap(ctx context.Context, k *keptAs) (changed bool, err error) {
	if k.Master == v.keys.current {
		return false, nil
	}
	data, err := v.keys.unwrap(k.Master, k.id, k.Wrapped)
	if err != nil {
		return false, err
	}
	k.Master, k.Wrapped = v.keys.current, v.keys.wrap(k.id, data)
	d, err := document(k.id, k.rev, k.kept)
	if err != nil {
		return false, err
	}
	if _, err = v.docs.PutDocument(ctx, d); forebay.CodeOf(err) == forebay.CodeConflict {
		return false, nil // somebody else has
	}
	return err == nil, err
}
