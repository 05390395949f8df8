// Command forebay takes events in at once, keeps what it accepted, and works it
// off at the pace of the database behind it.
//
// It promises to wire and to explain: it reads the settings, opens the parts, runs
// them in one group, stops them in order, and turns every failure into one line
// and an exit code. It is the only package that knows concrete engines and sinks.
//
// It refuses to hold behaviour: what a message, a retry or a verdict is, other
// packages decide.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task/image"
)

// commands is the command line. Kong reads its tags.
type commands struct {
	JSON bool `help:"Print JSON for scripts, without colours."`

	Serve   serveCmd   `cmd:"" group:"server" help:"Run the server until SIGTERM."`
	Demo    demoCmd    `cmd:"" group:"server" help:"Run a server, send sample traffic through it and show what happens."`
	Doctor  doctorCmd  `cmd:"" group:"server" help:"Check the data folder, disk, clock, port, database, keys and the queue on SQS."`
	Bench   benchCmd   `cmd:"" group:"server" help:"Measure this machine."`
	Config  configCmd  `cmd:"" group:"server" help:"Show the settings as they hold, and where each came from."`
	Rebuild rebuildCmd `cmd:"" group:"server" help:"Make the ledger of finished jobs anew from the history."`
	Backup  backupCmd  `cmd:"" group:"server" help:"Copy the data folder while a server works in it."`
	Restore restoreCmd `cmd:"" group:"server" help:"Make a data folder of such a copy."`
	Move    moveCmd    `cmd:"" group:"server" help:"Bring jobs from the data folder to Redis or PostgreSQL."`
	Version versionCmd `cmd:"" group:"server" help:"Print the version."`

	Send       sendCmd       `cmd:"" group:"look" help:"Send a file of events."`
	Jobs       jobsCmd       `cmd:"" group:"look" help:"Jobs: list, add, get, watch, cancel, retry, promote, rm."`
	Watch      watchCmd      `cmd:"" group:"look" help:"Follow a job until its end."`
	Queues     queuesCmd     `cmd:"" group:"look" help:"Queues: list, pause, resume, limit, drain."`
	Schedules  schedulesCmd  `cmd:"" group:"look" help:"Schedules: list, show, add, set, rm, pause, resume, run, preview."`
	Flow       flowCmd       `cmd:"" group:"look" help:"Flows and their runs: validate, fmt, diff, put, ls, show, run, runs, watch, cancel, pause, resume, retry, skip, discard, approve, event."`
	Dead       deadCmd       `cmd:"" group:"look" help:"Dead letters: list, groups, show, replay, edit, discard, actions, redrive."`
	Bad        badCmd        `cmd:"" group:"look" help:"Rejected events: list, show, replay, discard."`
	Events     eventsCmd     `cmd:"" group:"look" help:"Tell where an event is."`
	History    historyCmd    `cmd:"" group:"look" help:"History: what happened to jobs, what was sent; list, export."`
	Replay     replayCmd     `cmd:"" group:"look" help:"Send again what was sent, into a queue, the sink or a projection."`
	Health     healthCmd     `cmd:"" group:"look" help:"Grade the server and its queues, with reasons."`
	Alerts     alertsCmd     `cmd:"" group:"look" help:"Alerts: list the rules and what they fire for, mute one."`
	Encryption encryptionCmd `cmd:"" group:"look" help:"Encryption: by which keys what is stored is sealed; status, rotate."`
	Audit      auditCmd      `cmd:"" group:"look" help:"Tell who changed what."`
	Keys       keysCmd       `cmd:"" group:"look" help:"Keys: list, add, revoke."`
	SQS        sqsCmd        `cmd:"" name:"sqs" group:"look" help:"SQS: access keys of clients, dead letters on AWS."`
}

const description = `Forebay takes events in within milliseconds, keeps what it accepted, and writes it to the database at the database's pace.

Exit codes: 0 done; 1 failed; 2 wrong usage or settings; 3 cannot start (port or data folder in use, read-only, full, or written by a newer version).`

// imageChild is how the program calls itself to work on pictures in a process of
// its own. It is no command for people.
const imageChild = "image-worker"

func main() { os.Exit(run(os.Args[1:])) }

// run is the whole program but for os.Exit, so that tests can start it too.
func run(args []string) int {
	p := &program{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, lookup: os.LookupEnv,
		terminal: term.IsTerminal(int(os.Stdout.Fd())),
	}
	keepPrivate()
	if len(args) > 0 && args[0] == imageChild {
		return image.ChildMain(args[1:], p.in, p.out)
	}
	return p.run(args)
}

// program is what commands run in.
type program struct {
	in       io.Reader
	out, err io.Writer
	lookup   func(string) (string, bool)
	terminal bool // out is one
	json     bool
}

// exit ends the parsing of the command line early; kong needs a call that does not
// return.
type exit int

func (p *program) run(args []string) (code int) {
	defer func() {
		if v := recover(); v != nil {
			e, ok := v.(exit)
			if !ok {
				panic(v)
			}
			code = int(e)
		}
	}()
	var c commands
	parser, err := kong.New(&c,
		kong.WithHyphenPrefixedParameters(true), // --from -1h
		kong.Name("forebay"), kong.Description(description), kong.Writers(p.out, p.err),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "server", Title: "The server"}, {Key: "look", Title: "Events and what became of them"},
		}),
	)
	if err != nil {
		return p.report(err)
	}
	call, err := parser.Parse(args)
	if err != nil {
		e := forebay.Errorf(forebay.CodeInvalid, "", "%w", err)
		e.Hint = "forebay --help, or forebay COMMAND --help, tells how it is used"
		return p.report(usage(e))
	}
	p.json = c.JSON
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	call.BindTo(ctx, (*context.Context)(nil))
	return p.report(call.Run(p))
}
