package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay/event"
)

const (
	daysAhead     = 3      // partitions made before they are needed
	oldestDay     = 400    // days back for which a late event gets a partition
	newestDay     = 7      // days ahead for which one of a wrong clock does
	defaultSlice  = 10_000 // rows dropped from the default partition per statement
	partitionDate = "20060102"
)

// day counts days since 1970, in UTC.
type day int64

const daySeconds = 24 * 60 * 60

func dayOf(t time.Time) day {
	s := t.Unix()
	d := s / daySeconds
	if s%daySeconds < 0 {
		d--
	}
	return day(d)
}

func (d day) start() time.Time { return time.Unix(int64(d)*daySeconds, 0).UTC() }

// bound is the day's start as an SQL literal.
func (d day) bound() string { return "'" + d.start().Format("2006-01-02") + " 00:00:00+00'" }

// partition names a partition: events_20261129, events_default.
func (db *database) partition(suffix string) pgx.Identifier {
	name := append(pgx.Identifier(nil), db.table...)
	name[len(name)-1] += "_" + suffix
	return name
}

// ensureDaysOf makes the partitions that the events need and that are not there:
// late ones, or all of a database that was down for days. Days far from now stay
// without: the default partition takes their events.
func (db *database) ensureDaysOf(ctx context.Context, events []event.Event) error {
	var missing []day
	last := day(-1 << 62)
	db.mu.Lock()
	for i := range events {
		d := dayOf(events[i].ReceivedAt)
		if d == last {
			continue
		}
		last = d
		if _, ok := db.days[d]; !ok && db.inRange(d) {
			missing = append(missing, d)
		}
	}
	db.mu.Unlock()
	for _, d := range missing {
		if err := db.ensureDay(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (db *database) inRange(d day) bool {
	today := dayOf(db.cfg.Now())
	return d >= today-oldestDay && d <= today+newestDay
}

// forget makes the next batch look for its partitions again.
func (db *database) forget() {
	db.mu.Lock()
	defer db.mu.Unlock()
	clear(db.days)
}

// ensureDay makes the partition of a day. It is made beside the table and then
// attached, which blocks nobody who writes to other days; events of the day that
// the default partition has taken move over.
func (db *database) ensureDay(ctx context.Context, d day) error {
	name := db.partition(d.start().Format(partitionDate))
	err := db.underLock(ctx, func(ctx context.Context, tx pgx.Tx) error {
		attached, err := db.attached(ctx, tx, name)
		if err != nil || attached {
			return err
		}
		table, part, rest := db.table.Sanitize(), name.Sanitize(), db.partition("default").Sanitize()
		span := fmt.Sprintf("received_at >= %s AND received_at < %s", d.bound(), (d + 1).bound())
		for _, sql := range []string{
			"CREATE TABLE IF NOT EXISTS " + part + " (LIKE " + table + " INCLUDING ALL)",
			"WITH moved AS (DELETE FROM ONLY " + rest + " WHERE " + span + " RETURNING *) INSERT INTO " + part + " SELECT * FROM moved",
			"ALTER TABLE " + table + " ATTACH PARTITION " + part + " FOR VALUES FROM (" + d.bound() + ") TO (" + (d + 1).bound() + ")",
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("partition %s: %w", strings.Join(name, "."), err)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.days[d] = struct{}{}
	return nil
}

func (db *database) attached(ctx context.Context, tx pgx.Tx, name pgx.Identifier) (bool, error) {
	var yes bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_inherits
		WHERE inhparent = to_regclass($1) AND inhrelid = to_regclass($2))`, db.table.Sanitize(), name.Sanitize()).Scan(&yes)
	return yes, err
}

// Maintain makes the partitions of the coming days, gives events in the default
// partition their own, and drops what is older than the retention. The sink does
// it by itself when it opens and each hour.
func (s *Sink) Maintain(ctx context.Context) error {
	db := s.db
	ctx, cancel := context.WithTimeout(ctx, 4*db.cfg.Timeout)
	defer cancel()
	if err := db.prepare(ctx); err != nil {
		return err
	}
	db.forget()
	stray, err := db.strayDays(ctx)
	if err != nil {
		return err
	}
	today := dayOf(db.cfg.Now())
	for d := today; d <= today+daysAhead; d++ {
		stray = append(stray, d)
	}
	for _, d := range stray {
		if err := db.ensureDay(ctx, d); err != nil {
			return err
		}
	}
	if db.cfg.Retention == 0 {
		return nil
	}
	return db.dropBefore(ctx, db.cfg.Now().Add(-db.cfg.Retention))
}

// strayDays are the days of the default partition's events that can have a
// partition. Others stay, and are told.
func (db *database) strayDays(ctx context.Context) ([]day, error) {
	rows, err := db.pool.Query(ctx, "SELECT DISTINCT floor(extract(epoch FROM received_at) / $1)::bigint FROM "+
		db.partition("default").Sanitize(), daySeconds)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[day])
	if err != nil {
		return nil, err
	}
	var stray []day
	for _, d := range all {
		if db.inRange(d) {
			stray = append(stray, d)
		}
	}
	if far := len(all) - len(stray); far > 0 {
		db.cfg.Logger.Warn("events far from today are in the default partition",
			slog.String("sink", db.cfg.Name), slog.Int("days", far))
	}
	return stray, nil
}

// dropBefore drops the partitions that ended before a time, and such events of the
// default partition, in slices.
func (db *database) dropBefore(ctx context.Context, cutoff time.Time) error {
	names, err := db.partitionsBefore(ctx, cutoff)
	if err != nil {
		return err
	}
	for _, name := range names {
		part := db.partition(name)
		err := db.underLock(ctx, func(ctx context.Context, tx pgx.Tx) error {
			attached, err := db.attached(ctx, tx, part)
			if err != nil || !attached {
				return err // another process was first
			}
			_, err = tx.Exec(ctx, "ALTER TABLE "+db.table.Sanitize()+" DETACH PARTITION "+part.Sanitize()+
				"; DROP TABLE "+part.Sanitize())
			return err
		})
		if err != nil {
			return fmt.Errorf("retention: drop %s: %w", strings.Join(part, "."), err)
		}
		db.cfg.Logger.Info("day dropped by retention", slog.String("sink", db.cfg.Name), slog.String("partition", strings.Join(part, ".")))
	}
	rest := db.partition("default").Sanitize()
	for {
		tag, err := db.pool.Exec(ctx, "DELETE FROM ONLY "+rest+" WHERE ctid = ANY (ARRAY (SELECT ctid FROM ONLY "+rest+
			" WHERE received_at < $1 LIMIT $2))", cutoff, defaultSlice)
		if err != nil || tag.RowsAffected() < defaultSlice {
			return err
		}
	}
}

// partitionsBefore gives the suffixes of the partitions whose day ended by then.
func (db *database) partitionsBefore(ctx context.Context, cutoff time.Time) ([]string, error) {
	rows, err := db.pool.Query(ctx, `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = to_regclass($1) ORDER BY c.relname`, db.table.Sanitize())
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	var old []string
	for _, name := range names {
		suffix := strings.TrimPrefix(name, db.table[len(db.table)-1]+"_")
		at, err := time.Parse(partitionDate, suffix)
		if err == nil && !at.AddDate(0, 0, 1).After(cutoff) {
			old = append(old, suffix)
		}
	}
	return old, nil
}
