package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/forebayhq/forebay/api"
)

type auditCmd struct {
	serverFlags `embed:""`
	Actor       string `placeholder:"TEXT" help:"Only of an actor whose name or key id has this in it."`
	Action      string `placeholder:"TEXT" help:"Only with this in the action or its target, such as dead/replay or queues/mail."`
	Since       string `placeholder:"TIME" help:"Only since then: a time, or a duration back such as 24h."`
	Limit       int    `default:"50" help:"At most so many."`
}

func (auditCmd) Help() string {
	return `Every change over the API, the sub-commands and the console is kept with its actor: what was
selected, how much was changed, and the reason that was given. Needs an admin key.

Examples:
  forebay audit
  forebay audit --actor ops --since 24h
  forebay audit --action /api/keys --json`
}

func (c *auditCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	f := api.AuditFilter{Actor: c.Actor, Action: c.Action, Since: c.Since}
	all, err := pages(c.Limit, func(before int64, limit int) ([]api.AuditEntry, int64, error) {
		page, err := client.Audit(ctx, f, before, limit)
		return page.Items, page.Next, err
	})
	if err != nil {
		return err
	}
	return p.print(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no changes")
			return
		}
		fmt.Fprintln(w, "seq\tat\tactor\tvia\tchange\tstatus\tasked\tdone\treason")
		for _, e := range all {
			method, _, _ := strings.Cut(e.Action, " ")
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s %s\t%d\t%s\t%s\t%s\n", e.Seq, when(e.At), e.Actor, e.Via, method, e.Target, e.Status,
				dash(pairs(e.Asked)), dash(pairs(e.Done)), dash(oneLine(e.Reason)))
		}
	})
}

// pairs writes values in one line.
func pairs(m map[string]any) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v, ok := m[name].(string)
		if !ok {
			b, _ := json.Marshal(m[name]) // it was JSON before
			v = string(b)
		}
		all = append(all, name+"="+oneLine(v))
	}
	return strings.Join(all, " ")
}
