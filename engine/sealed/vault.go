package sealed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Collection is where a store keeps data keys, each sealed by a master key. Through an
// Engine it is not seen.
const Collection = "sealed.keys"

// firstKey is the id of the first data key of a store. Fingerprints are made with it.
const firstKey = 1

// kept is a data key as it is stored.
type kept struct {
	Master  string    `json:"master"`
	Wrapped []byte    `json:"wrapped"`
	Made    time.Time `json:"made"`
}

// vault keeps data keys among the documents of a store.
type vault struct {
	docs engine.Documents
	keys *Keys
	now  func() time.Time

	mu   sync.Mutex // guards those below
	data map[string][]byte
	last string // the id of what seals
}

func idOf(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

func docKey(id string) string { return hex.EncodeToString([]byte(id)) }

// sealing gives the data key that seals.
func (v *vault) sealing() (id, data []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return []byte(v.last), v.data[v.last]
}

// load reads all data keys, and makes one where none is sealed by the current master key.
// It gives the first one; nil: there is none.
func (v *vault) load(ctx context.Context) (first []byte, err error) {
	all, err := v.list(ctx)
	if err != nil {
		return nil, err
	}
	data := make(map[string][]byte, len(all))
	var newest *keptAs
	for i := range all {
		k := &all[i]
		if data[k.id], err = v.keys.unwrap(k.Master, k.id, k.Wrapped); err != nil {
			return nil, err
		}
		if k.Master == v.keys.current && (newest == nil || k.Made.After(newest.Made)) {
			newest = k
		}
	}
	v.mu.Lock()
	v.data = data
	v.mu.Unlock()
	if newest != nil {
		v.last = newest.id
	} else if v.keys.current != "" {
		if v.last, err = v.make(ctx, len(all) == 0); err != nil {
			return nil, err
		}
	}
	return v.data[idOf(firstKey)], nil
}

// make stores a new data key and gives its id. Of two processes that make the first one
// both go on with that which is stored.
func (v *vault) make(ctx context.Context, first bool) (string, error) {
	data, id := random(KeyBytes), string(random(idBytes))
	if first {
		id = idOf(firstKey)
	}
	k := kept{Master: v.keys.current, Wrapped: v.keys.wrap(id, data), Made: v.now().UTC()}
	d, err := document(id, 0, k)
	if err != nil {
		return "", err
	}
	if _, err = v.docs.PutDocument(ctx, d); forebay.CodeOf(err) == forebay.CodeConflict {
		_, err = v.find(ctx, []byte(id))
		return id, err
	}
	v.mu.Lock()
	v.data[id] = data
	v.mu.Unlock()
	return id, err
}

// find gives a data key, and asks the store for one that another process has made.
func (v *vault) find(ctx context.Context, id []byte) ([]byte, error) {
	v.mu.Lock()
	data := v.data[string(id)]
	v.mu.Unlock()
	if data != nil {
		return data, nil
	}
	d, err := v.docs.Document(ctx, Collection, docKey(string(id)))
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		return nil, tampered("its data key %s is not in this store", docKey(string(id)))
	}
	if err != nil {
		return nil, err
	}
	k, err := read(d)
	if err == nil {
		data, err = v.keys.unwrap(k.Master, string(id), k.Wrapped)
	}
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.data[string(id)] = data
	return data, nil
}

// keptAs is a data key with its place.
type keptAs struct {
	kept
	id  string
	rev int64
}

// list reads all data keys, the oldest first.
func (v *vault) list(ctx context.Context) ([]keptAs, error) {
	var all []keptAs
	for after := ""; ; {
		page, err := v.docs.Documents(ctx, Collection, after, engine.MaxDocuments)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			k, err := read(d)
			if err != nil {
				return nil, err
			}
			all = append(all, k)
		}
		after = page[len(page)-1].Key
	}
	slices.SortFunc(all, func(a, b keptAs) int { return cmp.Or(a.Made.Compare(b.Made), cmp.Compare(a.id, b.id)) })
	return all, nil
}

func read(d engine.Document) (k keptAs, err error) {
	id, err := hex.DecodeString(d.Key)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(d.Value)).Decode(&k.kept)
	}
	if err != nil || len(id) != idBytes {
		return k, tampered("the data key %q cannot be read: %v", d.Key, err)
	}
	k.id, k.rev = string(id), d.Rev
	return k, nil
}

func document(id string, rev int64, k kept) (engine.Document, error) {
	b, err := json.Marshal(k)
	return engine.Document{Collection: Collection, Key: docKey(id), Rev: rev, Value: b}, err
}
