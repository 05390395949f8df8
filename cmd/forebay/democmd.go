package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/cmd/forebay/internal/demo"
	"github.com/forebayhq/forebay/event"
)

type demoCmd struct {
	Data string        `default:"data/demo" placeholder:"DIR" help:"Folder of the demo; what an earlier demo left there is removed."`
	Each time.Duration `default:"3s" help:"How long ordinary traffic and the campaign take, each."`
	Keep bool          `help:"Let the server run afterwards, until Ctrl-C."`
}

func (demoCmd) Help() string {
	return `It starts a server on a free port and a folder of its own, sends an ordinary day of
events, mistakes of every kind, and a campaign with 50 times the traffic, and shows
what becomes of each event. It fails (exit code 1) when the numbers do not add up.

Examples:
  forebay demo
  forebay demo --keep`
}

// demoMark tells a folder that the demo made from one that holds something else.
const demoMark = ".forebay-demo"

func (c *demoCmd) Run(ctx context.Context, p *program) (err error) {
	if err := emptyDemo(ctx, c.Data); err != nil {
		return err
	}
	child, err := startChild(ctx, c.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.stop()) }()
	if err := addRule(filepath.Join(c.Data, eventsFile)); err != nil {
		return err
	}
	p.tell("%s  %s  queue and events in %s (SQLite, no other server)\n\n",
		p.paint(bold, "forebay demo"), child.file.URL, c.Data)
	show := demo.Config{Each: c.Each, URL: child.file.URL, Server: child, View: p.demoView(), Run: fmt.Sprintf("demo-%x", time.Now().Unix())}
	last, err := demo.Run(ctx, show)
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	rows, err := countRows(filepath.Join(c.Data, eventsFile))
	if err != nil {
		return err
	}
	if rows != last.Counts.Written {
		return fmt.Errorf("the numbers do not add up: %d were written, but %d rows are in the table", last.Counts.Written, rows)
	}
	if p.json {
		return p.print(last, nil)
	}
	p.tell("\n%s %d accepted = %d rows in %s + %d dead\n", p.paint(green, "adds up:"),
		last.Seen.Accepted, rows, eventsFile, last.Counts.Dead)
	p.nextLines(c, child.file.URL, show.Poisoned())
	if c.Keep {
		<-ctx.Done()
	}
	return nil
}

// tell prints words for people.
func (p *program) tell(format string, args ...any) {
	if !p.json {
		fmt.Fprintf(p.out, format, args...)
	}
}

func (p *program) demoView() func(demo.Frame) {
	if p.json {
		return func(demo.Frame) {}
	}
	if p.terminal {
		width := 0
		if f, ok := p.out.(*os.File); ok {
			width, _, _ = term.GetSize(int(f.Fd())) // unknown: 0
		}
		return (&demo.Screen{Out: p.out, Width: width, Paint: p.paint}).Show
	}
	return (&demo.Lines{Out: p.out}).Show
}

// nextLines are what a person would type next.
func (p *program) nextLines(c *demoCmd, url, poisoned string) {
	self, err := filepath.Rel(".", os.Args[0])
	if err != nil || !strings.Contains(os.Args[0], string(os.PathSeparator)) {
		self = os.Args[0]
	}
	first := fmt.Sprintf("%s serve --data %s", self, c.Data)
	if c.Keep {
		first = "(the server goes on until Ctrl-C)"
	} else {
		url = "localhost:8080"
	}
	fmt.Fprintf(p.out, `
Next:
  %[1]s
  curl -d '{"eventType":"app_open","payload":{"screen":"home"},"userId":"u1"}' %[2]s/ingest/event
  %[3]s queues --data %[4]s
  %[3]s dead ls --data %[4]s
  %[3]s bad ls --data %[4]s
  %[3]s events where %[5]s --data %[4]s
`, first, url, self, c.Data, poisoned)
}

// emptyDemo makes the folder, or empties it when an earlier demo made it.
func emptyDemo(ctx context.Context, dir string) error {
	mark := filepath.Join(dir, demoMark)
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		if _, err := os.Stat(mark); err != nil {
			return fmt.Errorf("%s holds something that no demo made; name another folder: --data DIR", dir)
		}
		if f, runs := findServer(ctx, dir); runs {
			return fmt.Errorf("a server runs on %s already, as process %d", dir, f.PID)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := makeFolder(dir); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o600)
}

// child is the server of the demo: this program, started as anyone would.
type child struct {
	cmd    *exec.Cmd
	file   serverFile
	client *api.Client
	exited chan error
	said   *os.File // its log
}

const childTimeout = 15 * time.Second

func startChild(ctx context.Context, dir string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	said, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return nil, err
	}
	c := &child{exited: make(chan error, 1), said: said}
	c.cmd = exec.Command(self, "serve", "--data", dir, "--listen", "127.0.0.1:0")
	c.cmd.Env = append(os.Environ(), "DATABASE_URL=", "PORT=")
	c.cmd.Stdout, c.cmd.Stderr = said, said
	c.cmd.SysProcAttr = childAttr()
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(err, said.Close())
	}
	go func() { c.exited <- c.cmd.Wait() }()
	if err := c.await(ctx, dir); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// await waits until the server has said where it is and is ready.
func (c *child) await(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case err := <-c.exited:
			c.exited <- err
			said, _ := os.ReadFile(c.said.Name())
			return fmt.Errorf("the server did not start: %s", strings.TrimSpace(string(said)))
		case <-ctx.Done():
			return errors.New("the server did not start in time")
		}
		f, err := readServerFile(dir)
		if err != nil {
			continue
		}
		if c.file = f; c.client == nil {
			if c.client, err = api.NewClient(f.URL, f.Token, nil); err != nil {
				return err
			}
		}
		if ready, err := c.client.Ready(ctx); err == nil && ready.Ready {
			return nil
		}
	}
}

// stop ends the server as an operator would, and hurries when it takes too long.
func (c *child) stop() error {
	err := c.cmd.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	timer := time.NewTimer(childTimeout)
	defer timer.Stop()
	select {
	case ended := <-c.exited:
		err = errors.Join(err, ended)
	case <-timer.C:
		err = errors.Join(err, errors.New("the server did not stop in time"), c.cmd.Process.Kill(), <-c.exited)
	}
	return errors.Join(err, c.said.Close())
}

// Counts implements demo.Server.
func (c *child) Counts(ctx context.Context) (demo.Counts, error) {
	queues, err := c.client.Queues(ctx)
	if err != nil {
		return demo.Counts{}, err
	}
	var n demo.Counts
	for _, q := range queues {
		if q.Name == event.Queue {
			n = demo.Counts{Written: q.Completed, Dead: q.Dead, Waiting: q.Waiting + q.Active + q.Delayed}
		}
	}
	if n.Dead > 0 {
		page, err := c.client.Dead(ctx, api.DeadFilter{Queue: event.Queue}, 0, 1)
		if err != nil {
			return n, err
		}
		if len(page.Items) > 0 {
			n.Cause = page.Items[0].Cause.Code + ": " + page.Items[0].Cause.Message
		}
	}
	return n, nil
}

// rule is a rule of the kind that real tables have: this one refuses orders with a
// negative total, so that the demo has a row that the edge takes and the database
// does not.
const rule = `CREATE TRIGGER demo_total BEFORE INSERT ON events
WHEN json_extract(NEW.payload, '$.total') < 0
BEGIN SELECT RAISE(ABORT, 'total must not be negative'); END`

func addRule(path string) error {
	return onFile(path, sqlite.OpenReadWrite, func(conn *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(conn, rule, nil)
	})
}

func countRows(path string) (n int64, err error) {
	err = onFile(path, sqlite.OpenReadOnly, func(conn *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(conn, "SELECT count(*) FROM events", &sqlitex.ExecOptions{
			ResultFunc: func(stmt *sqlite.Stmt) error { n = stmt.ColumnInt64(0); return nil },
		})
	})
	return n, err
}

func onFile(path string, flags sqlite.OpenFlags, do func(*sqlite.Conn) error) error {
	conn, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	conn.SetBusyTimeout(5 * time.Second)
	return errors.Join(do(conn), conn.Close())
}
