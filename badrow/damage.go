package badrow

import (
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay/internal/salvage"
)

// A damaged file is met by a statement at Open, in the writer or in a reader. What
// can be read of it is taken over into a new one (package salvage), Stats names
// the copy that is kept, and the call that met the damage goes on with the new one.

func (s *Store) plan() salvage.Plan {
	return salvage.Plan{
		Make:   func(conn *sqlite.Conn) error { return (&file{path: s.path, writer: conn}).prepare() },
		Mend:   mend,
		Logger: s.cfg.Logger,
	}
}

// mend counts the rows' sizes anew: a damaged one would make the store drop others.
func mend(conn *sqlite.Conn) error {
	size := "?1 + length(bytes)"
	for _, column := range []string{"key_id", "dialect", "event_id", "code", "pointer", "reason"} {
		size += " + length(CAST(" + column + " AS BLOB))"
	}
	return sqlitex.ExecuteTransient(conn, "UPDATE bad SET size = "+size+" WHERE size <> "+size,
		&sqlitex.ExecOptions{Args: []any{rowOverhead}})
}

// open opens the file, or what can be read of it. Call it with mu held.
func (s *Store) open() error {
	rep, err := salvage.Open(s.path, s.plan(), func() (err error) {
		s.file, err = openFile(s.path)
		return err
	})
	if rep.Copy != "" {
		s.aside = rep.Copy
	}
	return err
}

// swap replaces the damaged file of a running store. Only the writer calls it.
func (s *Store) swap(damage error) (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rep, err := salvage.Replace(s.path, s.plan(), damage, func() {
		s.file.close() // its error says once more that it is damaged
		s.file = nil
	})
	if err == nil {
		s.aside = rep.Copy
		err = s.open()
	}
	if err != nil {
		s.cfg.Logger.Error("badrow: the damaged file cannot be replaced, the next call tries again", "file", s.path, "error", err)
		return nil, err
	}
	return s.file, nil
}
