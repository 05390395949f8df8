package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/flow"
)

type flowDryRunCmd struct {
	serverFlags `embed:""`
	File        string   `arg:"" help:"A file of a flow, or - for standard input; or the name of one that the server has."`
	Input       string   `placeholder:"JSON" help:"What the run gets; @FILE reads a file."`
	Output      []string `placeholder:"STEP=JSON" sep:"none" help:"What a step's job gives, or what it waits for brings; without it: null, and yes to an approval. May be repeated."`
	Fail        []string `placeholder:"STEP" help:"A step whose job fails for good; may be repeated."`
	TimedOut    []string `placeholder:"STEP" help:"A wait for which nothing comes; may be repeated."`
}

func (flowDryRunCmd) Help() string {
	return `Decisions, expressions and data are those of a run; nothing is sent or stored. The exit
code is 1 where the run would fail.

Examples:
  forebay flow dry-run registration.yaml --input '{"email":"a@example.com","name":"Ada"}'
  forebay flow dry-run registration.yaml --input @input.json --output 'create={"userId":7}' --fail welcome`
}

func (c *flowDryRunCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	try := api.TryFlow{Outputs: map[string]json.RawMessage{}, Failures: map[string]api.TryFailure{}, TimedOut: c.TimedOut}
	if try.Input, err = p.jsonArg(c.Input); err != nil {
		return err
	}
	if try.Source, err = c.source(ctx, p, client); err != nil {
		return err
	}
	for _, text := range c.Output {
		step, output, ok := strings.Cut(text, "=")
		if !ok || !json.Valid([]byte(output)) {
			return usage(fmt.Errorf("--output %s: STEP=JSON is wanted, such as create={\"userId\":7}", text))
		}
		try.Outputs[step] = json.RawMessage(output)
	}
	for _, step := range c.Fail {
		try.Failures[step] = api.TryFailure{}
	}
	tried, err := client.TryFlow(ctx, try)
	if err != nil {
		return err
	}
	if err := p.print(tried, func(w io.Writer) { p.showTried(w, &tried) }); err != nil {
		return err
	}
	if tried.State == flow.RunFailed {
		return fmt.Errorf("the run would fail: %s", failureCell(tried.Failure))
	}
	return nil
}

// source is a file, or what the server has under that name.
func (c *flowDryRunCmd) source(ctx context.Context, p *program, client *api.Client) (string, error) {
	src, err := p.file(c.File)
	if err == nil || !os.IsNotExist(err) {
		return string(src), err
	}
	f, none := client.Flow(ctx, c.File, 0)
	if forebay.CodeOf(none) == forebay.CodeNotFound {
		return "", fmt.Errorf("there is no file and no flow %q", c.File)
	}
	return f.Source, none
}

func (p *program) showTried(w io.Writer, t *api.TriedFlow) {
	fmt.Fprintf(w, "state\t%s\n", p.runState(t.State, false))
	if t.Failure != nil {
		fmt.Fprintf(w, "why\t%s\n", failureCell(t.Failure))
	}
	for i := range t.Sent {
		s := &t.Sent[i]
		step := s.Step
		if s.Item != nil {
			step = fmt.Sprintf("%s[%d]", step, *s.Item)
		}
		what := strings.TrimSpace(s.Use + " " + s.Queue)
		if s.Undo {
			what = "undo " + what
		}
		if what == "" {
			what = string(s.Kind)
		}
		if s.Delay > 0 {
			what += " " + time.Duration(s.Delay).String()
		}
		fmt.Fprintf(w, "sends\t%s\t%s\t%s\n", step, what, oneLine(string(s.Payload)))
	}
	for i := range t.Steps {
		if s := &t.Steps[i]; s.State != flow.StepCompleted {
			fmt.Fprintf(w, "step\t%s\t%s\t%s\n", s.ID, p.stepState(s), stepNote(s))
		}
	}
	for _, one := range t.Waiting {
		fmt.Fprintf(w, "waits\t%s\t%s\n", dash(one.Step), oneLine(one.Text))
	}
	if t.Output != nil {
		fmt.Fprintf(w, "output\t%s\n", oneLine(string(t.Output)))
	}
	if t.Cut {
		fmt.Fprintln(w, "it was cut short: it would send more")
	}
}
