package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/cmd/forebay/internal/move"
	"github.com/forebayhq/forebay/engine/postgres"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/engine/sealed"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/event"
)

type moveCmd struct {
	settingsFlags `embed:""`
	From          string `required:"" placeholder:"ENGINE" help:"Where jobs are: sqlite."`
	To            string `required:"" placeholder:"ENGINE" help:"Where they go: redis (setting redis.url), or postgres (setting postgres.url)."`
	DryRun        bool   `help:"Only count what would be moved."`
}

func (moveCmd) Help() string {
	return `Jobs, dead letters, schedules, inboxes, flows and the limits of queues go from the data folder to Redis or PostgreSQL.
No server may run on either. Each job is compared with what it was before anything changes in the data folder;
then what waits there is cancelled, so that nothing runs twice. Cut off, it is done again and goes on.

Events, the history, and queues of SQS clients stay where they are. Jobs that wait have all their attempts again.
Take a copy first (forebay backup), then start the servers with redis.url or postgres.url.

Examples:
  REDIS_URL=redis://10.0.0.5:6379 forebay move --from sqlite --to redis --data /var/lib/forebay --dry-run
  REDIS_URL=redis://10.0.0.5:6379 forebay move --from sqlite --to redis --data /var/lib/forebay
  FOREBAY_POSTGRES_URL=postgres://db/app forebay move --from sqlite --to postgres --data /var/lib/forebay`
}

func (c *moveCmd) Run(ctx context.Context, p *program) error {
	settings, err := c.load(p)
	if err != nil {
		return err
	}
	switch {
	case c.From != "sqlite" || c.To != "redis" && c.To != "postgres":
		return usage(fmt.Errorf("--from %s --to %s is not possible; allowed: --from sqlite --to redis, --from sqlite --to postgres", c.From, c.To))
	case c.To == "redis" && settings.Redis.Address() == "":
		return usage(errors.New("where Redis is, is not said: REDIS_URL, or redis.url in the settings"))
	case c.To == "postgres" && settings.Postgres.URL == "":
		return usage(errors.New("where PostgreSQL is, is not said: FOREBAY_POSTGRES_URL, or postgres.url in the settings"))
	}
	if _, err := os.Stat(filepath.Join(settings.Data.Dir, queueFile)); err != nil {
		return usage(fmt.Errorf("%w; name the data folder of a server with --data", err))
	}
	from, err := openLocal(settings, newLogger(p.err, settings.Log, false))
	if err != nil {
		return err
	}
	done, err := c.move(ctx, p, settings, from)
	if err = errors.Join(err, from.Close()); err != nil {
		return err
	}
	return p.print(done, func(w io.Writer) { c.say(w, done) })
}

func (c *moveCmd) move(ctx context.Context, p *program, settings *config.Settings, from *sqlite.Engine) (done move.Result, err error) {
	if err := noAdvances(ctx, from); err != nil {
		return done, err
	}
	to, name, err := c.target(ctx, settings)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	log := newLogger(p.err, settings.Log, false)
	var opened, taken *sealed.Engine
	if opened, err = sealStore(settings, log, from, false); err == nil {
		taken, err = sealStore(settings, log, to, false)
	}
	if err != nil {
		return done, err
	}
	return move.Move(ctx, move.Config{
		From: movable{storeOf(from, opened), from}, To: storeOf(to, taken), Name: name, DryRun: c.DryRun, Told: p.progress(),
		Stays: func(queue string) bool {
			return queue == event.Queue || strings.HasPrefix(queue, outboxPrefix)
		},
		StaysDocument: func(collection string) bool { // of the SQS endpoint, whose queues stay
			return collection == sealed.Collection || collection == "sqs" || strings.HasPrefix(collection, "sqs.")
		},
	})
}

// target opens where jobs go, and names it.
func (c *moveCmd) target(ctx context.Context, settings *config.Settings) (move.Store, string, error) {
	if c.To == "postgres" {
		to, err := postgres.Open(ctx, postgresConfig(settings))
		if err != nil {
			return nil, "", postgresError(&settings.Postgres, err)
		}
		return to, postgresName(&settings.Postgres), nil
	}
	to, err := redis.Open(ctx, redisConfig(settings))
	if err != nil {
		return nil, "", redisError(&settings.Redis, err)
	}
	return to, redisName(&settings.Redis), nil
}

// noAdvances refuses while runs of flows have something to tell themselves: a start of the
// server does that in a moment.
func noAdvances(ctx context.Context, from *sqlite.Engine) error {
	stats, err := from.Stats(ctx, advanceQueue)
	if err != nil {
		return err
	}
	if n := stats[0].Waiting + stats[0].Delayed; n > 0 {
		e := forebay.Errorf(forebay.CodeConflict, "move", "%d steps of flows have ended, and their runs do not know it yet", n)
		e.Hint = "start the server on this data folder once, without redis.url and postgres.url, and stop it after some seconds"
		return e
	}
	return nil
}

// progress shows steps on a terminal.
func (p *program) progress() func(move.Step) {
	f, _ := p.err.(*os.File)
	if f == nil || !term.IsTerminal(int(f.Fd())) || p.json {
		return nil
	}
	return func(s move.Step) {
		fmt.Fprintf(p.err, "\r\x1b[K%s: %d of %d", s.What, s.Done, s.Of)
		if s.Done == s.Of {
			fmt.Fprintln(p.err)
		}
	}
}

func (c *moveCmd) say(w io.Writer, done move.Result) {
	verb := "were moved and compared"
	if c.DryRun {
		verb = "would be moved"
	}
	all := 0
	var states []string
	for _, s := range forebay.States {
		if n := done.Jobs[s]; n > 0 {
			all += n
			states = append(states, fmt.Sprintf("%d %s", n, s))
		}
	}
	how := ""
	if all > 0 {
		how = "(" + strings.Join(states, ", ") + ") "
	}
	fmt.Fprintf(w, "%d jobs %s%s\n", all, how, verb)
	if done.Moved > 0 {
		fmt.Fprintf(w, "%d more were moved before, and stay as they are there\n", done.Moved)
	}
	if !c.DryRun {
		fmt.Fprintf(w, "%d documents and the limits of %d queues too; what waited in the data folder is cancelled there\n", done.Documents, done.Queues)
	}
	if done.Attempts > 0 {
		fmt.Fprintf(w, "%d of them had failed before; they have all their attempts again\n", done.Attempts)
	}
}
