package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/forebayhq/forebay/api"
)

// selectFlags say which bad rows a command is for.
type selectFlags struct {
	Seqs   []int64 `arg:"" optional:"" name:"seq" help:"Their numbers, as ls shows them."`
	All    bool    `help:"All that the filter matches, instead of numbers."`
	Limit  int     `help:"With --all: at most so many (default: 10,000)."`
	DryRun bool    `help:"Only count."`
}

func (f selectFlags) selection() (api.Selection, error) {
	if f.All == (len(f.Seqs) > 0) {
		return api.Selection{}, usage(errors.New("name some by their numbers, or say --all"))
	}
	return api.Selection{Seqs: f.Seqs, All: f.All, Limit: f.Limit, DryRun: f.DryRun}, nil
}

// act does something with what was selected, and tells what came of it.
func (p *program) act(ctx context.Context, server serverFlags, which selectFlags, done string,
	do func(*api.Client, api.Selection) (api.Outcome, error)) error {
	s, err := which.selection()
	if err != nil {
		return err
	}
	client, err := server.client(ctx, p)
	if err != nil {
		return err
	}
	out, err := do(client, s)
	if err != nil {
		return err
	}
	return p.outcome(out, done)
}

// outcome tells what came of an action. It is an error when anything failed, so
// that scripts notice.
func (p *program) outcome(out api.Outcome, done string) error {
	err := p.print(out, func(w io.Writer) {
		if out.DryRun {
			fmt.Fprintf(w, "%d would be %s\n", out.Matched, done)
			return
		}
		fmt.Fprintf(w, "%d %s\n", out.Done, done)
		for _, fail := range out.Failed {
			fmt.Fprintf(w, "  %d: %s\n", fail.Seq, fail.Message)
		}
		if out.More {
			fmt.Fprintln(w, "there are more: run it again")
		}
	})
	if err == nil && out.FailedCount > 0 {
		err = fmt.Errorf("%d were not %s", out.FailedCount, done)
	}
	return err
}
