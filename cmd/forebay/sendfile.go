package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/forebayhq/forebay/cmd/forebay/internal/send"
)

type sendCmd struct {
	serverFlags `embed:""`
	File        string        `arg:"" help:"Events, one JSON object per line; - reads standard input."`
	Batch       int           `default:"500" help:"Most events in a request."`
	Patience    time.Duration `default:"10m" help:"How long to try while the server cannot take more."`
	Strict      bool          `help:"Fail (exit code 1) when an event was rejected."`
}

func (sendCmd) Help() string {
	return `An interrupted run is taken up where the server confirmed it, told by a hidden file
beside FILE. Events without an eventId get one that depends on the file and the line,
so sending a file again stores nothing twice.

Examples:
  forebay send events.ndjson
  forebay send events.ndjson --url https://ingest.example.com --key fbk_…
  zcat old.ndjson.gz | forebay send -`
}

func (c *sendCmd) Run(ctx context.Context, p *program) error {
	t, err := c.find(ctx, p)
	if err != nil {
		return err
	}
	cfg := send.Config{URL: t.url, Key: c.Key, Batch: c.Batch, Patience: c.Patience, Logger: slog.New(slog.NewTextHandler(p.err, nil))}
	bar := p.bar()
	cfg.Progress = func(at send.Progress) {
		bar.ChangeMax64(max(at.Size, at.Offset))
		_ = bar.Set64(at.Offset) // a bar that cannot be drawn is no reason to stop
	}
	var sum send.Summary
	if c.File == "-" {
		sum, err = send.Reader(ctx, p.in, cfg)
	} else {
		sum, err = send.File(ctx, c.File, cfg)
	}
	_ = bar.Exit()
	if printed := p.summary(sum); err == nil {
		err = printed
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; run it again to go on")
	case err == nil && c.Strict && sum.Rejected > 0:
		return fmt.Errorf("%d events were rejected", sum.Rejected)
	}
	return err
}

// bar is a progress bar on the terminal of errors; elsewhere it draws nothing.
func (p *program) bar() *progressbar.ProgressBar {
	f, isFile := p.err.(*os.File)
	seen := isFile && !p.json && term.IsTerminal(int(f.Fd()))
	return progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(p.err), progressbar.OptionSetVisibility(seen), progressbar.OptionShowBytes(true),
		progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetDescription("sending"), progressbar.OptionClearOnFinish())
}

func (p *program) summary(sum send.Summary) error {
	const shown = 10
	return p.print(sum, func(w io.Writer) {
		if sum.Resumed > 0 {
			fmt.Fprintf(w, "went on at\t%s\n", humanize.Bytes(uint64(sum.Resumed)))
		}
		fmt.Fprintf(w, "accepted\t%s\n", humanize.Comma(int64(sum.Accepted)))
		fmt.Fprintf(w, "duplicate\t%s\n", humanize.Comma(int64(sum.Duplicate)))
		fmt.Fprintf(w, "rejected\t%s\n", humanize.Comma(int64(sum.Rejected)))
		for _, r := range sum.Rejections[:min(len(sum.Rejections), shown)] {
			fmt.Fprintf(w, "  line %d\t%s: %s\n", r.Line, r.Code, oneLine(r.Message))
		}
		if more := sum.Rejected - shown; more > 0 {
			fmt.Fprintf(w, "  and %d more\tforebay bad ls\n", more)
		}
		fmt.Fprintf(w, "took\t%s, %d retries\n", sum.Took.Round(time.Millisecond), sum.Retries)
	})
}
