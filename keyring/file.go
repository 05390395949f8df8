package keyring

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
)

// maxCounted bounds what is believed of a file of counters, so that none overflows.
const maxCounted = 1 << 62

// Versions of the files. Keys that hold for some queues, or were rotated, need the later
// one, so that a program that knows nothing of that does not let them do more.
const (
	plainVersion = 1
	fileVersion  = 2
	usageVersion = 1
)

type keyFile struct {
	Version int         `json:"version"`
	Keys    []storedKey `json:"keys"`
}

type storedKey struct {
	Key
	Hash string `json:"sha256"`              // of the secret, in hex
	Old  string `json:"oldSha256,omitempty"` // of the one before
}

// load reads a file of keys; one that does not exist is empty.
func load(path string) ([]*entry, error) {
	const op = "keyring: open"
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeUnavailable, op, "%w", err)
	}
	all, err := decode(b)
	if err != nil {
		e := forebay.Errorf(forebay.CodeOf(err), op, "%s: %w", path, err)
		e.Hint = "the file is left as it is; put back a copy, or move it away and add new keys"
		return nil, e
	}
	return all, nil
}

// decode reads a file of keys strictly: what it does not understand could be a
// limit of a key, and must not be dropped by the next save.
func decode(b []byte) ([]*entry, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, forebay.Errorf(forebay.CodeDamaged, "", "%w", err)
	}
	if head.Version > fileVersion {
		return nil, forebay.Errorf(forebay.CodeTooNew, "", "it has version %d, this program reads up to %d", head.Version, fileVersion)
	}
	if head.Version < 1 {
		return nil, forebay.Errorf(forebay.CodeDamaged, "", "it has no version")
	}
	var f keyFile
	if err := json.Unmarshal(b, &f, json.RejectUnknownMembers(true)); err != nil {
		return nil, forebay.Errorf(forebay.CodeDamaged, "", "%w", err)
	}
	all := make([]*entry, len(f.Keys))
	ids := make(map[string]bool, len(f.Keys))
	for i, k := range f.Keys {
		e := &entry{Key: k.Key, meter: new(meter)}
		if !readHash(&e.hash, k.Hash) || k.Old != "" && !readHash(&e.old, k.Old) {
			return nil, forebay.Errorf(forebay.CodeDamaged, "", "the sha256 of key %d (%s) is not 64 hex digits", i+1, k.Name)
		}
		if k.ID == "" || ids[k.ID] {
			return nil, forebay.Errorf(forebay.CodeDamaged, "", "key %d (%s) has no id of its own", i+1, k.Name)
		}
		ids[k.ID] = true
		spec := Spec{Name: k.Name, Scopes: k.Scopes, Rate: k.Rate, Burst: k.Burst, DailyQuota: k.DailyQuota, Origins: k.Origins, Queues: k.Queues}
		if p := spec.problems(); len(p) > 0 {
			return nil, forebay.Errorf(forebay.CodeDamaged, "", "key %d (%s): %s", i+1, k.Name, strings.Join(p, "; "))
		}
		all[i] = e
	}
	return all, nil
}

func readHash(into *[sha256.Size]byte, text string) bool {
	if len(text) != 2*len(into) {
		return false
	}
	_, err := hex.Decode(into[:], []byte(text))
	return err == nil
}

func save(path string, all []*entry) error { return replace(path, encode(all)) }

func encode(all []*entry) keyFile {
	f := keyFile{Version: plainVersion, Keys: make([]storedKey, len(all))}
	for i, e := range all {
		f.Keys[i] = storedKey{Key: e.Key, Hash: hex.EncodeToString(e.hash[:])}
		if e.old != ([sha256.Size]byte{}) {
			f.Keys[i].Old = hex.EncodeToString(e.old[:])
		}
		if len(e.Queues) > 0 || !e.RotatedAt.IsZero() {
			f.Version = fileVersion
		}
	}
	return f
}

// replace writes v as JSON in place of the file at path: either the old or the new
// content is there after a crash, never a part.
func replace(path string, v any) (err error) {
	defer func() {
		if err != nil {
			err = forebay.Errorf(forebay.CodeUnavailable, "keyring: write", "%w", err)
		}
	}()
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp") // has mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already where all went well
	defer f.Close()           // the second Close after a good first one is harmless
	if err := json.MarshalWrite(f, v, jsontext.WithIndent("  ")); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// What was counted today lies in a file of its own beside the keys, so that a
// lost or damaged counter never costs a key. It is saved SaveEvery after the first
// change and by Close: a crash forgets at most what was spent since the last save,
// which then can be spent once more on that day.

type usageFile struct {
	Version int              `json:"version"`
	Day     string           `json:"day"` // UTC, 2026-11-29
	Events  map[string]int64 `json:"events"`
}

func (r *Ring) usagePath() string {
	return strings.TrimSuffix(r.path, ".json") + ".usage.json"
}

// loadUsage fills the meters with what was counted today before.
func (r *Ring) loadUsage(all []*entry) {
	b, err := os.ReadFile(r.usagePath())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = decodeUsage(b, all)
	}
	if err != nil {
		r.cfg.Logger.Warn("keyring: the counters of daily quotas cannot be read, they begin at 0", "file", r.usagePath(), "error", err)
	}
}

// decodeUsage fills meters, all or none.
func decodeUsage(b []byte, all []*entry) error {
	var f usageFile
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	if f.Version != usageVersion {
		return forebay.Errorf(forebay.CodeTooNew, "", "it has version %d, this program reads %d", f.Version, usageVersion)
	}
	at, err := time.Parse(time.DateOnly, f.Day)
	if err != nil {
		return err
	}
	for _, e := range all {
		e.meter.day, e.meter.today = day(at), min(max(0, f.Events[e.ID]), maxCounted)
	}
	return nil
}

func (r *Ring) saveUsage() error {
	today := day(r.cfg.Now())
	f := usageFile{Version: usageVersion, Events: map[string]int64{}}
	f.Day = time.Unix(today*86400, 0).UTC().Format(time.DateOnly)
	for _, e := range r.view.Load().all {
		e.meter.mu.Lock()
		if e.meter.day == today && e.meter.today > 0 {
			f.Events[e.ID] = e.meter.today
		}
		e.meter.mu.Unlock()
	}
	if len(f.Events) == 0 {
		return nil
	}
	return replace(r.usagePath(), f)
}

// saveLoop saves counters SaveEvery after they changed, and at the end. Nothing
// ticks while nothing changes, and nothing is written that was not counted here: who
// only looks at a ring may be beside the process that owns it.
func (r *Ring) saveLoop() {
	defer close(r.saved)
	failing := false
	for {
		select {
		case <-r.dirty:
		case <-r.stop:
			select {
			case <-r.dirty:
				r.last = r.saveUsage()
			default:
			}
			return
		}
		t := time.NewTimer(r.cfg.SaveEvery)
		select {
		case <-t.C:
		case <-r.stop:
			t.Stop()
			r.last = r.saveUsage()
			return
		}
		err := r.saveUsage()
		if err != nil && !failing {
			r.cfg.Logger.Warn("keyring: the counters of daily quotas cannot be saved", "error", err)
		} else if err == nil && failing {
			r.cfg.Logger.Info("keyring: the counters of daily quotas are saved again")
		}
		if failing = err != nil; failing {
			r.changed()
		}
	}
}

// changed says that there is something to save.
func (r *Ring) changed() {
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}
