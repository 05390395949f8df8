package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/forebayhq/forebay/cmd/forebay/internal/backup"
	"github.com/forebayhq/forebay/engine/sqlite"
)

type backupCmd struct {
	Config string `short:"c" placeholder:"FILE" help:"Settings file, for its data.dir."`
	Data   string `placeholder:"DIR" help:"Data folder (setting data.dir; default: data)."`
	To     string `arg:"" name:"file-or-folder" help:"Where to: a file that ends in .tar or .tar.zst, or a folder. It must not be there yet."`
}

func (backupCmd) Help() string {
	return `The data folder is copied while a server works in it, or none: the queue first, then the other
databases, keys, uploads and results. Each database in the copy is whole and of one moment, and checked;
events that the queue's copy takes for unwritten are known again by their ids after a restore. What is
elsewhere is not in it: PostgreSQL, Redis, SQS, a bucket.

The copy holds secrets, as the data folder does; its mode is 0600. It appears under its name when it is complete.

Examples:
  forebay backup /backup/forebay-$(date +%F).tar.zst --data /var/lib/forebay
  forebay backup /backup/forebay-today --json`
}

func (c *backupCmd) Run(ctx context.Context, p *program) error {
	dir, err := serverFlags{Config: c.Config, Data: c.Data}.dir(p)
	if err != nil {
		return err
	}
	began := time.Now()
	m, err := backup.Write(ctx, backup.Config{Folder: dir, Queue: queueFile, To: c.To, Program: built().Version, Now: began})
	if err != nil {
		return err
	}
	return p.print(m, func(w io.Writer) {
		fmt.Fprintf(w, "%d files, %s, are in %s after %s\n", len(m.Files), humanize.IBytes(uint64(m.Bytes())), c.To, time.Since(began).Round(time.Millisecond))
	})
}

type restoreCmd struct {
	Config string `short:"c" placeholder:"FILE" help:"Settings file, for its data.dir."`
	Data   string `placeholder:"DIR" help:"Data folder to make (setting data.dir; default: data)."`
	From   string `arg:"" name:"file-or-folder" help:"A copy that forebay backup made."`
}

func (restoreCmd) Help() string {
	return `The copy is checked, file by file, against what it says of itself, and becomes the data folder, which must
not be there, or be empty. No file is written over, and nothing is put back of a copy that is not whole.
Copies of earlier versions are taken; the next start of the server brings them up to its own.

Jobs and events that came in after the copy was made are not in it. What ended since then is handed out again.

Examples:
  forebay restore /backup/forebay-2026-11-30.tar.zst --data /var/lib/forebay`
}

func (c *restoreCmd) Run(ctx context.Context, p *program) error {
	dir, err := serverFlags{Config: c.Config, Data: c.Data}.dir(p)
	if err != nil {
		return err
	}
	m, err := backup.Restore(ctx, c.From, dir, func(made string) error {
		return sqlite.Renew(filepath.Join(made, queueFile))
	})
	if err != nil {
		return err
	}
	return p.print(m, func(w io.Writer) {
		fmt.Fprintf(w, "%d files, %s, of %s are in %s; forebay serve --data %s goes on with them\n",
			len(m.Files), humanize.IBytes(uint64(m.Bytes())), m.At.Format(time.RFC3339), dir, dir)
	})
}
