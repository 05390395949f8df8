package main

import (
	"context"
	"fmt"
	"io"

	"github.com/forebayhq/forebay/api"
)

type eventsCmd struct {
	Where eventsWhereCmd `cmd:"" help:"Tell where an event is: edge, queue, sink, dead letters or bad rows."`
}

type eventsWhereCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"The event's id: the messageId of its answer."`
}

func (eventsWhereCmd) Help() string {
	return `It fails (exit code 1) when no place knows the event.

Examples:
  forebay events where 0199c2f0-7b1e-7d43-9c51-5d0f2b8e7a10`
}

func (c *eventsWhereCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	e, err := client.Event(ctx, c.ID)
	if err != nil {
		return err
	}
	err = p.print(e, func(w io.Writer) {
		fmt.Fprintf(w, "%s\t%s\n", e.ID, p.paint(bold, string(e.State)))
		for _, place := range e.Places {
			mark := p.paint(dim, "-")
			switch {
			case place.Failed:
				mark = p.paint(red, "?")
			case place.Found:
				mark = p.paint(green, "*")
			}
			says := oneLine(place.Says)
			if place.Seq > 0 {
				says += fmt.Sprintf(" (number %d)", place.Seq)
			}
			fmt.Fprintf(w, "%s %s\t%s\n", mark, place.Name, says)
		}
	})
	if err == nil && e.State == api.StateUnknown {
		err = fmt.Errorf("no place knows the event %s", c.ID)
	}
	return err
}
