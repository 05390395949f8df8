package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/openworkflow"
)

type flowExportCmd struct {
	File string `arg:"" help:"File of a flow; - is standard input."`
	Out  string `placeholder:"FILE" help:"Write it there instead of to standard output."`
}

func (flowExportCmd) Help() string {
	return `What cannot cross is told on standard error, each with its place: as a warning where the
rest holds without it. Where it does not, nothing is written and the exit code is 1.

Examples:
  forebay flow export registration.yaml > registration.openworkflow.yaml
  forebay flow export registration.yaml --json | jq .problems`
}

func (c *flowExportCmd) Run(p *program) error { return p.cross(c.File, c.Out, openworkflow.Export) }

type flowImportCmd struct {
	File string `arg:"" help:"An Open Workflow document (DSL 1.0); - is standard input."`
	Out  string `placeholder:"FILE" help:"Write it there instead of to standard output."`
}

func (flowImportCmd) Help() string {
	return `What cannot cross is told as with forebay flow export.

Examples:
  forebay flow import order.openworkflow.yaml --out order.yaml
  forebay flow import - < order.openworkflow.yaml`
}

func (c *flowImportCmd) Run(p *program) error { return p.cross(c.File, c.Out, openworkflow.Import) }

// cross writes a file in the other form.
func (p *program) cross(file, to string, way func([]byte) ([]byte, flow.Problems, error)) error {
	src, err := p.file(file)
	if err != nil {
		return err
	}
	out, problems, err := way(src)
	if wrong := (flow.Problems)(nil); errors.As(err, &wrong) {
		things := "things"
		if len(problems.Errors()) == 1 {
			things = "thing"
		}
		err = fmt.Errorf("%s: %d %s cannot cross", file, len(problems.Errors()), things)
	} else if err != nil {
		return err
	}
	if p.json {
		told := p.print(struct {
			Source   string        `json:"source"`
			Problems flow.Problems `json:"problems"`
		}{string(out), append(flow.Problems{}, problems...)}, nil)
		return errors.Join(told, err)
	}
	for _, one := range problems {
		kind := ""
		if one.Warning {
			kind = "warning: "
		}
		fmt.Fprintf(p.err, "%s:%d:%d: %s%s (%s, %s)\n", file, one.Line, one.Column, kind, one.Text, one.Code, one.Path)
	}
	if err != nil {
		return err
	}
	if to != "" {
		return os.WriteFile(to, out, 0o644)
	}
	_, err = io.WriteString(p.out, string(out))
	return err
}
