package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/forebayhq/forebay/api"
)

type flowReleaseCmd struct {
	serverFlags `embed:""`
	Name        string `arg:"" help:"Name of the flow."`
	Version     int    `help:"Without it, the latest."`
	Comment     string `help:"For those who look at the versions."`
}

func (flowReleaseCmd) Help() string {
	return `With the setting flows.fourEyes a version runs only when somebody other than its author
has approved it. Who somebody is, the key says.

Examples:
  forebay flow diff registration --from 3 --to 4
  forebay flow release registration --version 4 --comment "as in the ticket"`
}

func (c *flowReleaseCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	if c.Version == 0 {
		f, err := client.Flow(ctx, c.Name, 0)
		if err != nil {
			return err
		}
		c.Version = f.Version
	}
	v, err := client.ReleaseFlow(ctx, c.Name, c.Version, c.Comment)
	if err != nil {
		return err
	}
	return p.print(v, func(w io.Writer) { fmt.Fprintf(w, "%s\tversion %d\t%s\n", v.Name, v.Version, releaseText(&v.Release)) })
}

type flowRestoreCmd struct {
	serverFlags `embed:""`
	Name        string `arg:"" help:"Name of the flow."`
	Version     int    `required:"" help:"Whose contents are wanted."`
	Reason      string `required:"" help:"Why; it is kept with the version and in the audit log."`
}

func (flowRestoreCmd) Help() string {
	return `Versions do not change: what an old one says becomes the next one.

Examples:
  forebay flow restore registration --version 3 --reason "4 sends two mails"`
}

func (c *flowRestoreCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	v, err := client.RestoreFlow(ctx, c.Name, c.Version, c.Reason)
	if err != nil {
		return err
	}
	return p.print(v, func(w io.Writer) {
		text := "as version " + fmt.Sprint(c.Version)
		if !v.Created {
			text += ", which is what the latest says"
		}
		fmt.Fprintf(w, "%s\tversion %d\t%s\n", v.Name, v.Version, text)
	})
}

// releaseText says who stored a version, why, and who approved it.
func releaseText(r *api.FlowRelease) string {
	var parts []string
	if r.Author != "" {
		parts = append(parts, "by "+r.Author)
	}
	if !r.At.IsZero() {
		parts = append(parts, r.At.Local().Format("2006-01-02 15:04"))
	}
	if r.Reason != "" {
		parts = append(parts, oneLine(r.Reason))
	}
	if r.ApprovedBy != "" {
		parts = append(parts, "approved by "+r.ApprovedBy)
	}
	return strings.Join(parts, ", ")
}
