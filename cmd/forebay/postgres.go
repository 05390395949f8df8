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
	var version, database, user string
	var table, mayCreate, mayInsert bool
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_database(), current_user,
		to_regclass('events') IS NOT NULL,
		has_schema_privilege(current_schema(), 'CREATE'),
		coalesce(has_table_privilege(to_regclass('events'), 'INSERT'), false)`).
		Scan(&version, &database, &user, &table, &mayCreate, &mayInsert)
	switch {
	case err != nil:
		return "", err
	case !table && !mayCreate:
		return "", fmt.Errorf("there is no table events, and the user %s may not make it", user)
	case table && !mayInsert:
		return "", fmt.Errorf("the user %s may not write to the table events", user)
	case !table:
		return fmt.Sprintf("PostgreSQL %s, database %s; the table events will be made", version, database), nil
	}
	return fmt.Sprintf("PostgreSQL %s, database %s, table events", version, database), nil
}
