package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/forebayhq/forebay"
)

type rebuildCmd struct {
	settingsFlags `embed:""`
	Force         bool `help:"Also when finished jobs would be lost whose messages are no longer kept."`
}

func (rebuildCmd) Help() string {
	return `What the ledger says of jobs that are completed, cancelled or expired is dropped and made anew from the
history and from what was sent, which are kept for as long as history.maxAge and the queue's historyAge say.
Of the embedded engine; no server may run on the data folder. Finished jobs that could not be made anew are
counted, and nothing is changed, without --force. Cut off, it is done again.

Examples:
  forebay rebuild --data /var/lib/forebay
  forebay rebuild --data /var/lib/forebay --force --json`
}

func (c *rebuildCmd) Run(ctx context.Context, p *program) (err error) {
	settings, err := c.load(p)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(settings.Data.Dir, queueFile)); err != nil {
		return usage(fmt.Errorf("%w; name the data folder of a server with --data", err))
	}
	e, err := openLocal(settings, newLogger(p.err, settings.Log, false))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	found, err := e.RebuildLedger(ctx, c.Force)
	if forebay.CodeOf(err) == forebay.CodeConflict {
		return fmt.Errorf("%d finished jobs would be lost, %d can be made anew; nothing was changed (--force loses them)", found.Missing, found.Jobs)
	}
	if err != nil {
		return err
	}
	out := struct {
		Jobs    int64 `json:"jobs"`
		Missing int64 `json:"missing"`
	}{found.Jobs, found.Missing}
	return p.print(out, func(w io.Writer) {
		fmt.Fprintf(w, "%d finished jobs are in the ledger again, %d were lost\n", out.Jobs, out.Missing)
	})
}
