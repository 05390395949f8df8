package redis

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/forebayhq/forebay"
)

//go:embed lua
var luaFiles embed.FS

// scripts are all of them by name, each with the library before it; those for plain
// messages, in a folder of their own, with the part of it that they need.
var scripts = sync.OnceValue(func() map[string]*goredis.Script {
	read := func(dir string) (names, texts []string) {
		entries, err := fs.ReadDir(luaFiles, dir)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		for _, f := range entries {
			if f.IsDir() {
				continue
			}
			text, err := luaFiles.ReadFile(path.Join(dir, f.Name()))
			if err != nil {
				panic("BUG: " + err.Error())
			}
			names, texts = append(names, strings.TrimSuffix(f.Name(), ".lua")), append(texts, string(text))
		}
		return names, texts
	}
	parts, lib := read("lua/lib")
	all := make(map[string]*goredis.Script)
	for dir, library := range map[string][]string{"": lib, "plain/": lib[:slices.Index(parts, "15_plain")+1]} {
		names, texts := read(path.Join("lua", dir))
		for i, name := range names {
			all[dir+name] = goredis.NewScript(strings.Join(library, "\n") + "\n" + texts[i])
		}
	}
	return all
})

func fail(code forebay.Code, format string, args ...any) *forebay.Error {
	return forebay.Errorf(code, "redis", format, args...)
}

// reply is what every script gives.
type reply struct {
	out   []any
	now   int64 // ms
	extra []any
}

// run runs a script and takes in what it says beside its answer. While the server
// says that it did nothing (it loads, is a replica, has no master) or cannot be dialled,
// it tries again until the call's time is over.
func (e *Engine) run(whole context.Context, name string, args ...any) (reply, error) {
	ctx, cancel := context.WithTimeout(whole, e.cfg.Timeout)
	defer cancel()
	now := int64(0)
	if e.clock != nil {
		now = e.clock().UnixMilli()
	}
	all := append([]any{e.cfg.Prefix, now, e.cfg.History, e.cfg.Metrics}, args...)
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		began := e.now()
		v, err := scripts()[name].Run(ctx, e.client, []string{e.global("h")}, all...).Slice()
		if err == nil {
			e.did()
			r := e.taken(v)
			e.hear(r.now, began)
			return r, nil
		}
		if !undone(err) || !pause(ctx, wait) {
			if late(err) && whole.Err() == nil {
				e.block.cut()
			}
			return reply{}, e.fault(err)
		}
	}
}

// runPlain runs a script for plain messages, or tells that it could not do it.
func (e *Engine) runPlain(ctx context.Context, name string, args ...any) (r reply, done bool, err error) {
	r, err = e.run(ctx, "plain/"+name, args...)
	return r, err == nil && (len(r.extra) == 0 || text(r.extra[0]) != "slow"), err
}

// pause waits, and tells whether ctx lives on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// undone tells whether an error means that nothing was done.
func undone(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" || errors.Is(err, goredis.ErrPoolTimeout) {
		return true
	}
	for _, word := range []string{"LOADING ", "READONLY ", "CLUSTERDOWN ", "MASTERDOWN ", "NOREPLICAS ", "BUSY ", "TRYAGAIN ", "MOVED ", "ASK "} {
		if strings.HasPrefix(err.Error(), word) {
			return true
		}
	}
	return false
}

// late tells whether there was no answer in time.
func late(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// errDenied marks what the server refuses to whoever this process is there. That is no word
// on who calls it: to callers Redis is unavailable, and the hint is for the operator.
var errDenied = errors.New("no right")

// opening gives the code to an error that whoever starts this process can mend.
func opening(err error) error {
	var coded *forebay.Error
	if errors.Is(err, errDenied) && errors.As(err, &coded) {
		told := *coded
		told.Code = forebay.CodeUnauthorized
		return &told
	}
	return err
}

// fault gives an error of the client its code.
func (e *Engine) fault(err error) error {
	var coded *forebay.Error
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.Is(err, context.Canceled):
		return err
	case strings.HasPrefix(err.Error(), "OOM "):
		f := fail(forebay.CodeFull, "the server has no memory left: %v", err)
		f.Hint = "raise maxmemory, or let queues drain"
		return f
	case strings.HasPrefix(err.Error(), "NOAUTH "), strings.HasPrefix(err.Error(), "WRONGPASS "), strings.HasPrefix(err.Error(), "NOPERM "):
		f := fail(forebay.CodeUnavailable, "the server refuses the user of this process: %v", err)
		f.Err = errors.Join(errDenied, err)
		f.Hint = "correct user and password of the address; the user needs all commands but those that administer the server"
		return f
	case strings.HasPrefix(err.Error(), "ERR "), strings.HasPrefix(err.Error(), "WRONGTYPE "):
		return fail(forebay.CodeInternal, "a script failed: %w", err)
	}
	return fail(forebay.CodeUnavailable, "the server does not answer: %w", err)
}

// taken reads a reply, counts what ended and notes when time will do something.
func (e *Engine) taken(v []any) reply {
	r := reply{out: list(v[0]), now: number(v[3])}
	if len(v) > 4 {
		r.extra = list(v[4])
	}
	if counts := list(v[2]); len(counts) > 0 {
		e.tally.ended(counts)
	}
	if due := number(v[1]); due > 0 {
		e.keeper.sooner(time.Duration(due-r.now) * time.Millisecond)
	}
	return r
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}

// millis is a time as scripts take it; 0: none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMilli(), 0)
}

// notBefore is millis of a time that nothing may come before: a part of a millisecond
// counts as one.
func notBefore(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return millis(t.Add(time.Millisecond - time.Nanosecond))
}

func atMillis(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// ceilMillis is a duration as scripts take it, never shorter than it is.
func ceilMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
