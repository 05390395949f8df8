package sqlite

import (
	"context"
	"log/slog"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/internal/salvage"
)

// The life of a damaged file of events:
//
//  1. Open meets the damage: the file is kept as <path>.damaged-<time>, and what can
//     be read of it is taken over into a new one (package salvage).
//  2. A statement of a running sink meets it: from then on nothing is written, since
//     a damaged file may lose what is written to it. The sink pauses and says why;
//     the events wait in their queue. A mark makes the next Open do as in 1.

// note remembers damage that a statement has met.
func (db *database) note(err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
	default:
		return err
	}
	if met := db.damage.Load(); met != nil {
		return met
	}
	met := forebay.Errorf(forebay.CodeDamaged, "sqlite", "%s is damaged; restart the server: it keeps a copy and goes on with what can be read (%w)", db.path, err)
	if db.damage.CompareAndSwap(nil, met) {
		// Without the mark the next run meets the damage again, and says so again.
		if err := salvage.Mark(db.path, err); err != nil {
			db.cfg.Logger.Error("the damage cannot be marked", slog.String("sink", db.cfg.Name), slog.String("reason", err.Error()))
		}
		db.cfg.Logger.Error("damaged data, nothing is written any more", slog.String("sink", db.cfg.Name), slog.String("reason", met.Error()))
	}
	return met
}

// write is use for what writes.
func (db *database) write(ctx context.Context, f func(*sqlite.Conn) error) error {
	return db.use(ctx, db.writer, func(conn *sqlite.Conn) error {
		if met := db.damage.Load(); met != nil {
			return met
		}
		return f(conn)
	})
}
