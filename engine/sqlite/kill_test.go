package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/sqlite"
)

func TestKill(t *testing.T) {
	enginetest.Kill(t, enginetest.KillConfig{Keeps: true, Open: func(dir string) (engine.Engine, error) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		return sqlite.Open(sqlite.Config{Path: filepath.Join(dir, "forebay.db")})
	}})
}
