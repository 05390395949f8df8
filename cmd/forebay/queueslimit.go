package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/filter"
)

type queuesLimitCmd struct {
	serverFlags `embed:""`
	Queue       string `arg:"" help:"Name of the queue."`
	Active      *int   `placeholder:"N" help:"Most that run at once; 0: no limit."`
	Rate        *rate  `placeholder:"N/TIME" help:"Most that start per time, such as 10/s, 100/1m; 0: no limit."`
	Burst       *int   `placeholder:"N" help:"Most that start at once within the rate."`
	KeyActive   *int   `placeholder:"N" help:"Most that run at once, of each limit key."`
	KeyRate     *rate  `placeholder:"N/TIME" help:"Most that start per time, of each limit key."`
	KeyBurst    *int   `placeholder:"N" help:"Most that start at once within the rate of a key."`

	Concurrency    string `placeholder:"N|auto" help:"How many the server that is asked works on at once, until it is set again or the server ends; auto: as many as what stands behind the handlers takes."`
	ConcurrencyMin int    `placeholder:"N" help:"With auto, never fewer (1)."`
	ConcurrencyMax int    `placeholder:"N" help:"With auto, never more (100)."`
}

func (queuesLimitCmd) Help() string {
	return `What is not named stays as it is; with nothing named, the limits are shown. They hold at
once, for all workers; but for the concurrency, which is of the workers of one server. What of
that lasts is queues.NAME.concurrency in the settings.

Examples:
  forebay queues limit mail
  forebay queues limit mail --active 20 --rate 100/1m --burst 10
  forebay queues limit mail --key-active 1
  forebay queues limit mail --rate 0
  forebay queues limit mail --concurrency auto --concurrency-max 50`
}

// rate is like 10/s, 100/1m; 0: none.
type rate struct{ api.Rate }

func (r *rate) UnmarshalText(text []byte) error {
	count, per, found := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || !found && n != 0 {
		return fmt.Errorf("%q is no rate; one is like 10/s, 100/1m, or 0 for none", text)
	}
	*r = rate{api.Rate{Count: n}}
	if !found {
		return nil
	}
	if per != "" && !strings.ContainsAny(per[:1], "0123456789") {
		per = "1" + per
	}
	d, err := filter.ParseDuration(per)
	if err != nil || d == 0 {
		return fmt.Errorf("%q is no rate; one is like 10/s, 100/1m, or 0 for none", text)
	}
	r.PerSeconds = d.Seconds()
	return nil
}

func (c *queuesLimitCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	if c.Concurrency != "" || c.ConcurrencyMin+c.ConcurrencyMax != 0 {
		if err := c.tune(ctx, client); err != nil {
			return err
		}
	}
	limits, err := client.Limits(ctx, c.Queue)
	if err != nil {
		return err
	}
	if changed := c.over(limits); changed != limits {
		if limits, err = client.SetLimits(ctx, c.Queue, changed); err != nil {
			return err
		}
	}
	q, _ := client.Queue(ctx, c.Queue) // one without a message has no worker's figures either
	return p.print(limits, func(w io.Writer) {
		fmt.Fprintf(w, "queue\t%s\nactive\t%s\nrate\t%s\n", c.Queue, limitText(limits.Active), rateText(limits.Rate))
		fmt.Fprintf(w, "active of a key\t%s\nrate of a key\t%s\n", limitText(limits.KeyActive), rateText(limits.KeyRate))
		fmt.Fprintf(w, "concurrency\t%s\n", concurrencyText(q.Concurrency))
		if limits.Paused {
			fmt.Fprintln(w, p.paint(amber, "paused"))
		}
	})
}

func (c *queuesLimitCmd) tune(ctx context.Context, client *api.Client) error {
	s := api.SetConcurrency{Auto: c.Concurrency == "auto", Min: c.ConcurrencyMin, Max: c.ConcurrencyMax}
	if !s.Auto {
		n, err := strconv.Atoi(c.Concurrency)
		if err != nil || n < 1 {
			return fmt.Errorf("--concurrency: %q is neither auto nor a number from 1", c.Concurrency)
		}
		s.Limit = n
	}
	_, err := client.SetConcurrency(ctx, c.Queue, s)
	return err
}

// concurrencyText tells how many run, and how many may.
func concurrencyText(c *api.Concurrency) string {
	switch {
	case c == nil:
		return "-"
	case c.Auto:
		return fmt.Sprintf("%d/%d auto", c.Running, c.Limit)
	}
	return fmt.Sprintf("%d/%d", c.Running, c.Limit)
}

// over puts what was named over the limits as they are.
func (c *queuesLimitCmd) over(l api.Limits) api.Limits {
	set := func(into *int, v *int) {
		if v != nil {
			*into = *v
		}
	}
	set(&l.Active, c.Active)
	set(&l.KeyActive, c.KeyActive)
	if c.Rate != nil {
		l.Rate = c.Rate.Rate
	}
	if c.KeyRate != nil {
		l.KeyRate = c.KeyRate.Rate
	}
	set(&l.Rate.Burst, c.Burst)
	set(&l.KeyRate.Burst, c.KeyBurst)
	return l
}

func limitText(n int) string {
	if n == 0 {
		return "no limit"
	}
	return strconv.Itoa(n)
}

func rateText(r api.Rate) string {
	if r.Count == 0 {
		return "no limit"
	}
	per := time.Duration(r.PerSeconds * float64(time.Second))
	if per == 0 {
		per = time.Second
	}
	return fmt.Sprintf("%d in %s, %d at once", r.Count, per, max(r.Burst, 1))
}

type queuesDrainCmd struct {
	serverFlags `embed:""`
	Queue       string   `arg:"" help:"Name of the queue."`
	Delayed     bool     `help:"Wait for what is delayed too."`
	Timeout     duration `default:"10m" help:"How long to wait at most."`
}

func (queuesDrainCmd) Help() string {
	return `Waits until nothing waits and nothing runs, for scripts that stop or move something
afterwards. It changes nothing: stop the sending first.

Examples:
  forebay queues drain mail
  forebay queues drain mail --delayed --timeout 1h`
}

func (c *queuesDrainCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.Timeout))
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := int64(-1)
	for {
		q, err := client.Queue(ctx, c.Queue)
		left := q.Waiting + q.Active
		if c.Delayed {
			left += q.Delayed
		}
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return fmt.Errorf("%s still has %d messages after %s", c.Queue, last, time.Duration(c.Timeout))
		case err != nil:
			return err
		case left == 0:
			return p.print(q, func(w io.Writer) { fmt.Fprintf(w, "%s is empty\n", c.Queue) })
		case q.Limits != nil && q.Limits.Paused:
			return fmt.Errorf("%s is paused and has %d messages; forebay queues resume %s", c.Queue, left, c.Queue)
		case left != last && !p.json:
			fmt.Fprintf(p.err, "%d left, %.0f/s\n", left, q.DrainRate)
		}
		last = left
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
