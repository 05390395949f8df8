package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
)

type deadEditCmd struct {
	serverFlags `embed:""`
	Seq         int64  `arg:"" help:"Its number, as ls shows it."`
	NewData     string `arg:"" optional:"" name:"json" help:"Its data, as JSON; @FILE reads a file, - standard input."`
	File        string `short:"f" type:"path" placeholder:"FILE" help:"Its data, from a file."`

	Into     string            `placeholder:"QUEUE" help:"Another queue."`
	Priority *int              `help:"0 is the most urgent, 9 the least."`
	Delay    duration          `placeholder:"TIME" help:"Not before this has passed: 30s, 1h30m, 7d."`
	Attempts int               `help:"Failed ones before it is dead."`
	Timeout  duration          `placeholder:"TIME" help:"Of one attempt of a job."`
	Header   map[string]string `help:"NAME=VALUE; an empty value takes it out; may be repeated."`
}

func (deadEditCmd) Help() string {
	return `Without data and without other changes its data is opened in $VISUAL or $EDITOR; what you save
is sent. It becomes a new job, linked to the old one, which leaves the dead letters.

Examples:
  forebay dead edit 17
  forebay dead edit 17 '{"to":"ada@example.com"}'
  forebay dead edit 17 -f mended.json --into mail-slow --attempts 3`
}

func (c *deadEditCmd) Run(ctx context.Context, p *program) error {
	edit := api.DeadEdit{
		Queue: c.Into, Priority: c.Priority, Delay: api.Duration(c.Delay), Attempts: c.Attempts, Timeout: api.Duration(c.Timeout), Headers: c.Header,
	}
	source := c.NewData
	if c.File != "" {
		if source != "" {
			return usage(errors.New("the data is given twice, by itself and as a file"))
		}
		source = "@" + c.File
	}
	var err error
	if edit.Data, err = p.jsonArg(source); err != nil {
		return err
	}
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	if source == "" && c.Into == "" && c.Priority == nil && c.Delay == 0 && c.Attempts == 0 && c.Timeout == 0 && len(c.Header) == 0 {
		if edit.Data, err = c.byHand(ctx, p, client); err != nil {
			return err
		}
	}
	sent, err := client.EditDead(ctx, c.Seq, edit)
	if err != nil {
		return err
	}
	return p.print(sent, func(w io.Writer) { fmt.Fprintf(w, "%s\treplays %s\n", sent.JobID, sent.ReplayOf) })
}

// byHand lets the user change the data in his editor.
func (c *deadEditCmd) byHand(ctx context.Context, p *program, client *api.Client) (json.RawMessage, error) {
	editor, _ := p.lookup("VISUAL")
	if editor == "" {
		editor, _ = p.lookup("EDITOR")
	}
	if editor == "" {
		return nil, usage(errors.New("say what to change: the data as JSON, -f FILE, or another flag; or set EDITOR to change the data by hand"))
	}
	d, err := client.DeadLetter(ctx, c.Seq)
	if err != nil {
		return nil, err
	}
	var shown bytes.Buffer
	if err := json.Indent(&shown, d.Message.Payload.Bytes(), "", "  "); err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "", "the payload of dead letter %d is not JSON; give the new data as a file: -f FILE", c.Seq)
	}
	shown.WriteByte('\n')
	file, err := editFile(ctx, editor, c.Seq, shown.Bytes())
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if !json.Valid(data) {
		return nil, usage(fmt.Errorf("what you saved is not JSON (%w); it is still in %s: forebay dead edit %d -f %s", invalidJSON(data), file, c.Seq, file))
	}
	if err := os.Remove(file); err != nil {
		return nil, err
	}
	if bytes.Equal(data, shown.Bytes()) {
		return nil, usage(fmt.Errorf("nothing was changed, and nothing sent; forebay dead replay %d sends it as it is", c.Seq))
	}
	return data, nil
}

// editFile opens the editor on a file with what is to be changed, and gives the file.
func editFile(ctx context.Context, editor string, seq int64, content []byte) (string, error) {
	f, err := os.CreateTemp("", fmt.Sprintf("dead-%d-*.json", seq))
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", f.Name()) // it may have arguments
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("the editor (%s): %w", editor, errors.Join(err, os.Remove(f.Name())))
	}
	return f.Name(), nil
}

func invalidJSON(data []byte) error {
	var v any
	return json.Unmarshal(data, &v)
}
