package sign

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
)

// fileVersion is the version of the file that this program writes.
const fileVersion = 1

type keyFile struct {
	Version int         `json:"version"`
	Keys    []storedKey `json:"keys"`
}

// storedKey has the secret as it is: SigV4 computes with the secret itself, so that
// a hash of it would not do. The file's mode is what guards it.
type storedKey struct {
	Key
	Secret string `json:"secret,omitzero"` // none once the key ended
}

// load reads a file of keys; one that does not exist is empty. A file that others
// may read is refused: its secrets are no longer secret.
func load(path string) ([]*entry, error) {
	const op = "sqsapi/sign: open"
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeUnavailable, op, "%w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeUnavailable, op, "%w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		e := forebay.Errorf(forebay.CodeInvalid, op, "%s has mode %#o, others may use its secrets", path, info.Mode().Perm())
		e.Hint = "chmod 600 it, and replace its keys if others could have read them"
		return nil, e
	}
	var file keyFile
	var head struct {
		Version int `json:"version"`
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeUnavailable, op, "%w", err)
	}
	if err = json.Unmarshal(b, &head); err == nil && head.Version > fileVersion {
		return nil, forebay.Errorf(forebay.CodeTooNew, op, "%s has version %d, this program reads up to %d", path, head.Version, fileVersion)
	}
	if err == nil { // strict: what is not understood could be a limit of a key
		err = json.Unmarshal(b, &file, json.RejectUnknownMembers(true))
	}
	var all []*entry
	if err == nil {
		all, err = file.entries()
	}
	if err != nil {
		// The cause may quote the file, and with it a secret: only its place is told.
		e := forebay.Errorf(forebay.CodeDamaged, op, "%s: %s", path, place(err))
		e.Hint = "the file is left as it is; put back a copy, or move it away and add new keys"
		return nil, e
	}
	return all, nil
}

// place tells where a file is broken, without its content.
func place(err error) string {
	var s *json.SemanticError
	if errors.As(err, &s) {
		return "the value at " + string(s.JSONPointer) + " is not as it should be"
	}
	var j *jsontext.SyntacticError
	if errors.As(err, &j) {
		return "it is not JSON at " + string(j.JSONPointer)
	}
	return forebay.TextOf(err)
}

func (f *keyFile) entries() ([]*entry, error) {
	if f.Version < 1 {
		return nil, forebay.Errorf(forebay.CodeDamaged, "", "it has no version")
	}
	all := make([]*entry, len(f.Keys))
	ids := make(map[string]bool, len(f.Keys))
	for i, k := range f.Keys {
		p := problems(k.Name, k.Rights)
		if k.ID == "" || ids[k.ID] {
			p = append(p, "it has no id of its own")
		}
		if k.Live() != (k.Secret != "") {
			p = append(p, "a key has a secret as long as it is live")
		}
		if len(p) > 0 {
			return nil, forebay.Errorf(forebay.CodeDamaged, "", "key %d (%s): %s", i+1, k.ID, strings.Join(p, "; "))
		}
		ids[k.ID] = true
		all[i] = &entry{Key: k.Key, secret: k.Secret}
	}
	return all, nil
}

// save replaces the file: either the old or the new content is there after a crash.
func save(path string, all []*entry) (err error) {
	defer func() {
		if err != nil {
			err = forebay.Errorf(forebay.CodeUnavailable, "sqsapi/sign: write", "%w", err)
		}
	}()
	file := keyFile{Version: fileVersion, Keys: make([]storedKey, len(all))}
	for i, e := range all {
		file.Keys[i] = storedKey{e.Key, e.secret}
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp") // has mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already where all went well
	defer f.Close()           // the second Close after a good first one is harmless
	if err := json.MarshalWrite(f, file, jsontext.WithIndent("  ")); err != nil {
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
