package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/flow"
)

// Commands that work on files of flows without a server.

type flowValidateCmd struct {
	serverFlags `embed:""`
	Files       []string `arg:"" name:"file" help:"Files of flows; - is standard input."`
	Online      bool     `help:"Also compare with the handlers and flows of a server."`
}

func (flowValidateCmd) Help() string {
	return `Each problem is told with its place, a sentence and a code. The exit code is 1 where one
is more than a warning.

Examples:
  forebay flow validate registration.yaml
  forebay flow validate flows/*.yaml --json
  forebay flow validate registration.yaml --online`
}

// fileProblem is a problem as validate prints it as JSON.
type fileProblem struct {
	File string `json:"file"`
	flow.Problem
}

func (c *flowValidateCmd) Run(ctx context.Context, p *program) error {
	check := func(src []byte) (flow.Problems, error) {
		_, problems := flow.Load(src, flow.Known{})
		return problems, nil
	}
	if c.Online {
		client, err := c.client(ctx, p)
		if err != nil {
			return err
		}
		check = func(src []byte) (ps flow.Problems, err error) {
			v, err := client.CheckFlow(ctx, src)
			for _, one := range v.Problems {
				ps = append(ps, flow.Problem(one))
			}
			return ps, err
		}
	}
	all, wrong := []fileProblem{}, 0
	for _, file := range c.Files {
		src, err := p.file(file)
		if err != nil {
			return err
		}
		problems, err := check(src)
		if err != nil {
			return err
		}
		for _, one := range problems {
			all = append(all, fileProblem{file, one})
		}
		wrong += len(problems.Errors())
	}
	err := p.print(all, func(w io.Writer) {
		for _, one := range all {
			kind := ""
			if one.Warning {
				kind = p.paint(amber, "warning: ")
			}
			fmt.Fprintf(w, "%s:%d:%d: %s%s %s\n", one.File, one.Line, one.Column, kind, one.Text, p.paint(dim, "("+one.Code+", "+one.Path+")"))
		}
		if len(all) == 0 {
			fmt.Fprintln(w, p.paint(green, fmt.Sprintf("%d sound", len(c.Files))))
		}
	})
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d problems", wrong)
	}
	return err
}

// file reads a file, or standard input.
func (p *program) file(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(p.in, flow.MaxFileBytes+1))
	}
	return os.ReadFile(name)
}

type flowFmtCmd struct {
	Files []string `arg:"" name:"file" help:"Files of flows; - writes standard input to standard output."`
	Check bool     `help:"Write nothing; fail where a file is not written the usual way."`
}

func (flowFmtCmd) Help() string {
	return `Comments, order and the way in which values are written stay.

Examples:
  forebay flow fmt registration.yaml
  forebay flow fmt --check flows/*.yaml`
}

func (c *flowFmtCmd) Run(p *program) error {
	var changed []string
	for _, file := range c.Files {
		src, err := p.file(file)
		if err != nil {
			return err
		}
		out, err := flow.Format(src)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		switch {
		case file == "-" && !c.Check:
			if _, err := p.out.Write(out); err != nil {
				return err
			}
			continue
		case bytes.Equal(src, out):
			continue
		case !c.Check:
			if err := os.WriteFile(file, out, 0o644); err != nil {
				return err
			}
		}
		changed = append(changed, file)
	}
	if p.json || len(changed) > 0 {
		err := p.print(append([]string{}, changed...), func(w io.Writer) {
			for _, file := range changed {
				fmt.Fprintln(w, file)
			}
		})
		if err != nil {
			return err
		}
	}
	if c.Check && len(changed) > 0 {
		return errors.New("not written the usual way; forebay flow fmt does it")
	}
	return nil
}

type flowDiffCmd struct {
	serverFlags `embed:""`
	File        string `arg:"" help:"A file, or with --from and --to the name of a flow."`
	Other       string `arg:"" optional:"" name:"file2" help:"The file that it is compared with; without it, the latest version of the server."`
	From        int    `help:"A version of the server."`
	To          int    `help:"A later one, instead of a file."`
}

func (flowDiffCmd) Help() string {
	return `The exit code is 0 whether they differ or not.

Examples:
  forebay flow diff old.yaml new.yaml
  forebay flow diff registration.yaml
  forebay flow diff registration --from 3 --to 5`
}

func (c *flowDiffCmd) Run(ctx context.Context, p *program) error {
	changes, err := c.changes(ctx, p)
	if err != nil {
		return err
	}
	return p.print(changes, func(w io.Writer) {
		if len(changes) == 0 {
			fmt.Fprintln(w, "they do the same")
		}
		colours := map[string]string{"added": green, "removed": red, "changed": amber}
		for _, one := range changes {
			fmt.Fprintf(w, "%s\t%s\t%s\n", p.paint(colours[one.Kind], one.Kind), dash(one.Step), oneLine(one.Text))
		}
	})
}

func (c *flowDiffCmd) changes(ctx context.Context, p *program) ([]api.FlowChange, error) {
	if c.Other != "" {
		return c.files(p)
	}
	client, err := c.client(ctx, p)
	if err != nil {
		return nil, err
	}
	var d api.FlowDiff
	src, err := p.file(c.File)
	switch {
	case c.To > 0 || errors.Is(err, os.ErrNotExist):
		d, err = client.DiffFlow(ctx, c.File, c.From, c.To)
	case err == nil:
		of, problems := flow.Parse(src)
		if of == nil || len(problems.Errors()) > 0 {
			return nil, fmt.Errorf("%s: %w", c.File, problems)
		}
		d, err = client.DiffFlowFile(ctx, of.Name, c.From, src)
	}
	return d.Changes, err
}

func (c *flowDiffCmd) files(p *program) ([]api.FlowChange, error) {
	var of [2]*flow.Definition
	for i, file := range []string{c.File, c.Other} {
		src, err := p.file(file)
		if err != nil {
			return nil, err
		}
		d, problems := flow.Parse(src)
		if d == nil || len(problems.Errors()) > 0 {
			return nil, forebay.Errorf(forebay.CodeInvalid, "", "%s:%w", file, problems)
		}
		of[i] = d
	}
	all := []api.FlowChange{}
	for _, one := range flow.Diff(of[0], of[1]) {
		all = append(all, api.FlowChange(one))
	}
	return all, nil
}
