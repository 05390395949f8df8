package backup

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// Format is how copies are laid out. A program reads those of its own and of earlier ones.
const Format = 1

// manifestFile is the last file of a copy: one without it is not complete.
const manifestFile = "backup.json"

// maxManifest bounds what is read of it.
const maxManifest = 256 << 20

// Manifest says what is in a copy.
type Manifest struct {
	Format  int       `json:"format"`
	Program string    `json:"program"` // the version that made it
	At      time.Time `json:"at"`
	Files   []File    `json:"files"`
}

// File is one file of a copy.
type File struct {
	Name   string  `json:"name"` // within the data folder, with slashes
	Bytes  int64   `json:"bytes"`
	SHA256 string  `json:"sha256"`
	SQLite *SQLite `json:"sqlite,omitempty"`
}

// SQLite is what the header of a database says.
type SQLite struct {
	Application int64 `json:"application"`
	Version     int64 `json:"version"`
}

// Bytes is how much is in the copy.
func (m *Manifest) Bytes() (n int64) {
	for i := range m.Files {
		n += m.Files[i].Bytes
	}
	return n
}

func (m *Manifest) encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

func decodeManifest(b []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, damaged("%s cannot be read: %w", manifestFile, err)
	}
	if m.Format < 1 || m.Format > Format {
		e := forebay.Errorf(forebay.CodeUnsupported, "restore", "the copy is of format %d; allowed: 1 to %d", m.Format, Format)
		e.Hint = "use the version that made it, or a newer one: " + m.Program
		return nil, e
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		if !isName(f.Name) || seen[f.Name] {
			return nil, damaged("%s names %q, which cannot be a file of a data folder", manifestFile, f.Name)
		}
		seen[f.Name] = true
	}
	return m, nil
}

// isName tells whether a name stays within the folder.
func isName(name string) bool {
	return name != "" && name != manifestFile && path.Clean(name) == name && !path.IsAbs(name) &&
		name != ".." && !strings.HasPrefix(name, "../") && name != "." && !strings.ContainsAny(name, "\\\x00")
}

func damaged(format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeDamaged, "restore", format, args...)
	e.Hint = "take another copy; nothing was put back"
	return e
}

func refused(code forebay.Code, what, hint string, args ...any) error {
	e := forebay.Errorf(code, "", "%w", fmt.Errorf(what, args...))
	e.Hint = hint
	return e
}
