package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/filter"
)

type jobsAddCmd struct {
	serverFlags `embed:""`
	Queue       string `arg:"" help:"Name of the queue."`
	Name        string `arg:"" help:"Which handler it is for."`
	Data        string `arg:"" optional:"" help:"Its data, as JSON; @FILE reads a file, - standard input."`

	ID          string            `placeholder:"ID" help:"Of the job; a second one with it is a duplicate."`
	Delay       duration          `placeholder:"TIME" help:"Not before this has passed: 30s, 1h30m, 7d."`
	RunAt       time.Time         `placeholder:"TIME" help:"Not before, as RFC 3339."`
	Priority    *int              `help:"0 is the most urgent, 9 the least."`
	Attempts    int               `help:"Failed ones before it is dead."`
	Backoff     string            `enum:",fixed,exponential" default:"" help:"How the wait after a failure grows: fixed, exponential."`
	BackoffBase duration          `placeholder:"TIME" help:"The wait after the first failure."`
	BackoffCap  duration          `placeholder:"TIME" help:"The longest wait."`
	Timeout     duration          `placeholder:"TIME" help:"Of one attempt."`
	Deadline    moment            `placeholder:"TIME" help:"Of the whole: a time, or a duration from now."`
	Expires     moment            `placeholder:"TIME" help:"Not begun by then, it is expired."`
	DedupKey    string            `placeholder:"KEY" help:"Jobs with the same one mean the same."`
	DedupMode   string            `enum:",until_finished,throttle,debounce,keep_last" default:"" help:"until_finished, throttle, debounce, keep_last."`
	DedupWindow duration          `placeholder:"TIME" help:"How long it holds."`
	Group       string            `placeholder:"KEY" help:"Jobs of one group run in order."`
	LimitKey    string            `placeholder:"KEY" help:"The key of per-key limits."`
	Tenant      string            `help:"Tenants of a queue take turns."`
	Owner       string            `help:"Who is told when it is late or fails."`
	Tag         []string          `help:"To find it by; may be repeated."`
	Header      map[string]string `help:"NAME=VALUE; may be repeated."`
	Parent      string            `placeholder:"ID" help:"The job that it came from."`

	IdempotencyKey string `placeholder:"KEY" help:"Running the same command again with it adds nothing."`
	Watch          bool   `help:"Follow it until its end."`
}

func (jobsAddCmd) Help() string {
	return `Examples:
  forebay jobs add mail welcome '{"to":"a@example.com"}'
  forebay jobs add reports monthly @params.json --delay 10m --attempts 3 --tag finance
  echo '{"a":1}' | forebay jobs add work run - --watch
  forebay jobs add sync user '{"id":42}' --dedup-key user-42 --dedup-mode debounce --delay 5s`
}

// duration is read as the API and filters read one.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	v, err := filter.ParseDuration(string(text))
	*d = duration(v)
	return err
}

// moment is a time, or a duration from now.
type moment struct{ *api.Moment }

func (m *moment) UnmarshalText(text []byte) error {
	m.Moment = new(api.Moment)
	return m.Moment.UnmarshalText(text)
}

func (c *jobsAddCmd) Run(ctx context.Context, p *program) error {
	n, err := c.job(p)
	if err != nil {
		return err
	}
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	added, err := client.AddJob(ctx, n, c.IdempotencyKey)
	if err != nil {
		return err
	}
	if c.Watch {
		return p.watch(ctx, client, added.JobID)
	}
	return p.print(added, func(w io.Writer) {
		note := ""
		switch {
		case added.Replaced:
			note = "  it waited already, and has the new data"
		case added.Duplicate:
			note = "  it was there already"
		}
		fmt.Fprintf(w, "%s\t%s%s\n", added.JobID, added.State, note)
	})
}

func (c *jobsAddCmd) job(p *program) (api.NewJob, error) {
	n := api.NewJob{
		ID: c.ID, Queue: c.Queue, Name: c.Name, Delay: api.Duration(c.Delay), RunAt: c.RunAt, Priority: c.Priority, Attempts: c.Attempts,
		Timeout: api.Duration(c.Timeout), Deadline: c.Deadline.Moment, Expires: c.Expires.Moment,
		Group: c.Group, LimitKey: c.LimitKey, Tenant: c.Tenant, Owner: c.Owner, Tags: c.Tag, Headers: c.Header, Parent: c.Parent,
	}
	if c.Backoff != "" || c.BackoffBase > 0 || c.BackoffCap > 0 {
		n.Backoff = &api.Backoff{Kind: forebay.BackoffKind(c.Backoff), Base: api.Duration(c.BackoffBase), Cap: api.Duration(c.BackoffCap)}
	}
	if c.DedupKey != "" || c.DedupMode != "" || c.DedupWindow > 0 {
		n.Dedup = &api.Dedup{Key: c.DedupKey, Mode: forebay.DedupMode(c.DedupMode), Window: api.Duration(c.DedupWindow)}
	}
	data, err := p.jsonArg(c.Data)
	n.Data = data
	return n, err
}

// jsonArg reads JSON that is given as it is, in a file, or on standard input.
func (p *program) jsonArg(text string) (json.RawMessage, error) {
	data, err := []byte(text), error(nil)
	switch {
	case text == "":
		return nil, nil
	case text == "-":
		data, err = io.ReadAll(io.LimitReader(p.in, forebay.MaxPayloadBytes+1))
	case strings.HasPrefix(text, "@"):
		data, err = os.ReadFile(text[1:])
	}
	if err == nil && !json.Valid(data) {
		err = usage(errors.New("the data is not JSON; a text stands in quotes: '\"text\"'"))
	}
	return data, err
}
