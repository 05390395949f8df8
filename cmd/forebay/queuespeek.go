package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine"
)

type queuesPeekCmd struct {
	serverFlags `embed:""`
	Queue       string `arg:"" help:"Name of the queue."`
	Limit       int    `default:"20" help:"At most so many."`
}

func (queuesPeekCmd) Help() string {
	return `Looking is no hand-out: nothing is counted, and nobody waits for it.

Examples:
  forebay queues peek events
  forebay queues peek orders.fifo --limit 1 --json`
}

func (c *queuesPeekCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	all, after := []api.PeekedMessage{}, ""
	for len(all) < c.Limit {
		page, err := client.Peek(ctx, c.Queue, after, min(c.Limit-len(all), 200))
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		if after = page.Next; after == "" {
			break
		}
	}
	unused := false // nothing was ever sent to it: created over SQS, or a slip of the pen
	if len(all) == 0 {
		_, err := client.Queue(ctx, c.Queue)
		if unused = forebay.CodeOf(err) == forebay.CodeNotFound; err != nil && !unused {
			return err
		}
	}
	return p.print(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintf(w, "nothing waits in %s", c.Queue)
			if unused {
				fmt.Fprint(w, "; nothing was ever sent to a queue of this name (forebay queues)")
			}
			fmt.Fprintln(w)
			return
		}
		fmt.Fprintln(w, "id\tkind\twhere\tuntil\tdeliveries\tsent\tpayload")
		for _, m := range all {
			until := m.Due
			if m.Where == engine.WhereActive {
				until = m.LeaseUntil
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", m.Message.ID, dash(m.Message.Kind), m.Where, when(until), m.Deliveries,
				when(m.SentAt), payloadText(m.Message))
		}
	})
}

// payloadText shows a payload in one line.
func payloadText(m api.Message) string {
	b := m.Payload.Bytes()
	switch {
	case m.Payload != nil && m.Payload.JSON != nil: // has no control characters
		return oneLine(string(b))
	case !utf8.Valid(b):
		return fmt.Sprintf("%d bytes that are no text", len(b))
	}
	return oneLine(strconv.QuoteToGraphic(string(b)))
}
