package schedule_test

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// listless is the embedded engine without the listing of jobs, which schedules do not use.
type listless struct{ *sqlite.Engine }

func (listless) Jobs(context.Context, engine.JobQuery) (engine.JobPage, error) {
	return engine.JobPage{}, errFault
}

func (listless) Finished(context.Context) (map[string]map[forebay.State]int64, error) {
	return nil, errFault
}
