package image

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/forebayhq/forebay"
)

// ahead keeps processes that wait, each for one picture of which it will be told
// everything but the picture itself. A command is started ahead when it has come
// twice of late, and waits for a minute at most.
type ahead struct {
	start func(c *call) (*started, error)
	each  int // that wait with the same command
	most  int // that wait in all

	mu      sync.Mutex
	idle    map[string][]*started
	waiting int
	recent  []string // commands that came last
	closed  bool
	ended   sync.WaitGroup
}

const (
	recentCalls = 32
	waitsForJob = 4 // processes for each picture at work
)

func newAhead(start func(*call) (*started, error), parallel int) *ahead {
	return &ahead{start: start, each: parallel, most: waitsForJob * parallel, idle: make(map[string][]*started)}
}

// take gives a process that waits, or a new one. The caller discards it.
func (a *ahead) take(c *call) (*started, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, forebay.ErrDraining
	}
	for key := c.key(); len(a.idle[key]) > 0; {
		s := a.idle[key][0]
		a.remove(s)
		if s.timer.Stop() && s.lives() {
			return s, nil
		}
		a.ended.Go(s.discard)
	}
	return a.begin(c)
}

func (a *ahead) begin(c *call) (*started, error) {
	s, err := a.start(c)
	if err == nil {
		s.key = c.key()
	}
	return s, err
}

// prepare starts commands that are about to come, one of each, where fewer than so
// many wait. A failure is met again by whoever takes one.
func (a *ahead) prepare(fewer int, calls ...*call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range calls {
		key := c.key()
		if a.closed || a.waiting >= a.most || len(a.idle[key]) >= fewer {
			continue
		}
		s, err := a.begin(c)
		if err != nil {
			return
		}
		a.waiting++
		a.idle[key] = append(a.idle[key], s)
		s.timer = time.AfterFunc(idleTime, func() { a.expire(s) })
	}
}

// expect starts those commands ahead that have come before, and does not wait for
// that.
func (a *ahead) expect(calls []*call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	calls = slices.DeleteFunc(calls, func(c *call) bool {
		before := slices.Contains(a.recent, c.key())
		a.recent = append(a.recent, c.key())
		return !before
	})
	a.recent = slices.Clone(a.recent[max(0, len(a.recent)-recentCalls):])
	a.ended.Go(func() { a.prepare(a.each, calls...) })
}

// remove needs a.mu.
func (a *ahead) remove(s *started) bool {
	i := slices.Index(a.idle[s.key], s)
	if i < 0 {
		return false
	}
	a.waiting--
	if a.idle[s.key] = slices.Delete(a.idle[s.key], i, i+1); len(a.idle[s.key]) == 0 {
		delete(a.idle, s.key)
	}
	return true
}

func (a *ahead) expire(s *started) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.remove(s) {
		a.ended.Go(s.discard)
	}
}

func (a *ahead) close() {
	a.mu.Lock()
	a.closed = true
	for _, waiting := range a.idle {
		for _, s := range waiting {
			s.timer.Stop()
			a.ended.Go(s.discard)
		}
	}
	a.idle, a.waiting = make(map[string][]*started), 0
	a.mu.Unlock()
	a.ended.Wait()
}

// started is one process, and the folder that it has to itself.
type started struct {
	key   string
	dir   string
	cmd   *exec.Cmd
	in    io.WriteCloser
	said  *tail
	timer *time.Timer   // while it waits
	ended chan struct{} // closed at the end of the process; err is then how
	err   error
}

// newStarted starts a command. One goroutine stays on the thread that starts it until
// it ends, since its death signal comes with the end of that thread.
func newStarted(cmd *exec.Cmd) (*started, error) {
	s := &started{dir: cmd.Dir, cmd: cmd, said: &tail{most: 2048}, ended: make(chan struct{})}
	cmd.Stderr = s.said
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	running := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.ended)
		err := cmd.Start()
		running <- err
		if err == nil {
			s.err = cmd.Wait()
		}
	}()
	if err := <-running; err != nil {
		return nil, forebay.Errorf(forebay.CodeUnavailable, "image", "start %s: %w", cmd.Path, err)
	}
	return s, nil
}

// work gives the process what it waits for, and waits for its end. The error is
// *died where it was killed or crashed.
func (s *started) work(ctx context.Context, feed func(dir string, in io.Writer) error) (string, error) {
	stop := context.AfterFunc(ctx, s.kill)
	defer stop()
	err := feed(s.dir, s.in)
	s.in.Close()
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
		s.kill()
		<-s.ended
		return "", err
	}
	<-s.ended // which may have read enough, or be dead: how it ended tells
	return s.said.String(), ending(s.err)
}

func (s *started) lives() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

func (s *started) kill() {
	if s.lives() { // else its number may be another's by now
		killGroup(s.cmd.Process)
	}
}

// discard ends the process, if it lives, and removes its folder.
func (s *started) discard() {
	s.kill()
	s.in.Close()
	<-s.ended
	os.RemoveAll(s.dir)
}
