package image

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// pool is the backend in Go: processes of our own program that work on one picture
// at a time. One that is done waits a while for the next, since starting costs
// most: WebAssembly is compiled anew in each. One that fails is never used again.
type pool struct {
	command []string
	dir     string
	memory  int64
	time    time.Duration

	mu     sync.Mutex
	idle   []*child // the last one is the warmest
	closed bool
	ended  sync.WaitGroup
}

const (
	idleTime = time.Minute
	mostUses = 200
)

func newPool(cfg Config) *pool {
	return &pool{command: cfg.Child, dir: cfg.TempDir, memory: cfg.MaxMemory, time: cfg.Timeout}
}

// request and reply are lines of JSON on the child's input and output.
type request struct {
	Dir    string        `json:"dir"`
	Memory int64         `json:"memory"`
	CPU    time.Duration `json:"cpu"`
	Plan   *plan         `json:"plan"`
}

type reply struct {
	Stage string      `json:"stage,omitempty"` // it begins
	Made  []made      `json:"made,omitempty"`
	Error *stageError `json:"error,omitempty"`
}

func (p *pool) run(ctx context.Context, dir string, plan *plan, tell func(string)) ([]made, error) {
	c, err := p.take()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, c.kill)
	outputs, err := c.work(request{dir, p.memory, p.time, plan}, tell)
	if !stop() { // it was killed, or is being so
		err = context.Cause(ctx)
	}
	var s *stageError
	if err == nil || errors.As(err, &s) && !s.fatal() {
		p.give(c)
	} else {
		c.kill()
	}
	return outputs, err
}

// fatal tells whether the process ended with the error.
func (e *stageError) fatal() bool { return e.Code == "" }

func (p *pool) take() (*child, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, forebay.ErrDraining
	}
	for n := len(p.idle); n > 0; n = len(p.idle) {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		if c.awake() {
			return c, nil
		}
	}
	return p.start()
}

func (p *pool) give(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.uses++; p.closed || c.uses >= mostUses {
		c.kill()
		return
	}
	c.sleep()
	p.idle = append(p.idle, c)
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, c := range p.idle {
		c.awake()
		c.kill()
	}
	p.idle = nil
	p.mu.Unlock()
	p.ended.Wait()
}

// child is one process, used by one goroutine at a time.
type child struct {
	cmd   *exec.Cmd
	in    *json.Encoder
	out   *bufio.Scanner
	said  *tail
	ended chan struct{}
	timer *time.Timer // while idle: kills it
	uses  int
}

// start starts a process. One goroutine stays on the thread that starts it until it
// ends, since its death signal comes with the end of that thread.
func (p *pool) start() (*child, error) {
	c := &child{cmd: exec.Command(p.command[0], p.command[1:]...), said: &tail{most: 2048}, ended: make(chan struct{})}
	c.cmd.Env = []string{"GOTRACEBACK=none", "GOMAXPROCS=" + fmt.Sprint(runtime.GOMAXPROCS(0)), "PATH=/usr/bin:/bin", "TMPDIR=" + p.dir}
	c.cmd.Dir = p.dir
	c.cmd.Stderr = c.said
	ownGroup(c.cmd)
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = json.NewEncoder(in), bufio.NewScanner(out)
	c.out.Buffer(nil, 1<<20)
	started := make(chan error)
	p.ended.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.ended)
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.cmd.Wait() // whatever it says: who needs the answer finds that there is none
		}
	})
	if err := <-started; err != nil {
		return nil, forebay.Errorf(forebay.CodeUnavailable, "image", "start %s: %w", p.command[0], err)
	}
	return c, nil
}

// work has the child carry out a plan. An error without a code means that it is
// dead, or of no further use.
func (c *child) work(r request, tell func(string)) ([]made, error) {
	stage := stageLoad
	if err := c.in.Encode(r); err != nil {
		return nil, c.lost(stage)
	}
	for c.out.Scan() {
		var got reply
		if err := json.Unmarshal(c.out.Bytes(), &got); err != nil {
			return nil, &stageError{Stage: stage, Text: "the process answered with what is no answer"}
		}
		switch {
		case got.Error != nil:
			return nil, got.Error
		case got.Stage != "":
			stage = got.Stage
			tell(stage)
		default:
			return got.Made, nil
		}
	}
	return nil, c.lost(stage)
}

// lost says how the child ended.
func (c *child) lost(stage string) error {
	c.kill()
	<-c.ended
	text := "the process ended"
	if said := strings.TrimSpace(c.said.String()); said != "" {
		text += ": " + said
	}
	return &stageError{Stage: stage, Text: text}
}

func (c *child) kill() {
	select {
	case <-c.ended: // its number may be another's by now
	default:
		killGroup(c.cmd.Process)
	}
}

func (c *child) sleep() { c.timer = time.AfterFunc(idleTime, c.kill) }

// awake tells whether a child that was idle lives.
func (c *child) awake() bool {
	if !c.timer.Stop() {
		return false
	}
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}
