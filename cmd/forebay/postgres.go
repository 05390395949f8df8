package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// inspectPostgres looks at the database without changing it: who it is, and
// whether this user could make or fill the table.
func inspectPostgres(ctx context.Context, url string) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err // pgx keeps the password out of its errors
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var server, database, user string
	var table, ours, mayCreate, mayInsert bool
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_database(), current_user,
		to_regclass('events') IS NOT NULL, to_regclass('forebay_schema') IS NOT NULL,
		has_schema_privilege(current_schema(), 'CREATE'),
		coalesce(has_table_privilege(to_regclass('events'), 'INSERT'), false)`).
		Scan(&server, &database, &user, &table, &ours, &mayCreate, &mayInsert)
	if err != nil {
		return "", err
	}
	version := 0
	if table && ours {
		err = conn.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM forebay_schema WHERE name = 'sink:events'`).Scan(&version)
		if err != nil {
			return "", err
		}
	}
	switch {
	case !table && !mayCreate:
		return "", fmt.Errorf("there is no table events, and the user %s may not make it", user)
	case !table:
		return fmt.Sprintf("PostgreSQL %s, database %s; the table events will be made", server, database), nil
	case version == 0:
		return "", fmt.Errorf("the table events of the database %s was made by another program", database)
	case !mayInsert:
		return "", fmt.Errorf("the user %s may not write to the table events", user)
	}
	return fmt.Sprintf("PostgreSQL %s, database %s, table events in version %d", server, database, version), nil
}
