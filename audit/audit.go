// Package audit keeps who changed what: one line of JSON for each change that a person
// or a script makes over the API, the command line or the console.
//
// It promises that an entry is on the disk when Add returns; that entries are never
// changed; that the file is bounded, and what leaves it is its oldest half; and that a
// line which a crash has cut off costs itself only.
//
// It refuses to keep what was sent: payloads and secrets have no place in an entry.
package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// Entry is one change.
type Entry struct {
	Seq    int64          `json:"seq"`
	At     time.Time      `json:"at"`
	Actor  string         `json:"actor"`            // a key, or who else was let in
	Via    string         `json:"via"`              // api, cli or console
	Action string         `json:"action"`           // such as "POST /api/queues/{name}/pause"
	Target string         `json:"target,omitempty"` // such as "/api/queues/mail/pause"
	Reason string         `json:"reason,omitempty"` // as the actor gave it
	Asked  map[string]any `json:"asked,omitempty"`  // the filter and its like
	Done   map[string]any `json:"done,omitempty"`   // counts and ids
	Status int            `json:"status"`           // of HTTP; what is 400 and more was refused
}

// Config of a Log. The zero value works.
type Config struct {
	MaxBytes int64            // of both files together; default 32 MiB
	Now      func() time.Time // default time.Now
}

const (
	maxBytes = 32 << 20
	maxLine  = 64 << 10
	oldFile  = ".1"

	// MaxList is the most entries of one List.
	MaxList = 1000
)

// Log is a file of entries. It is safe for concurrent use.
type Log struct {
	path string
	cfg  Config

	mu   sync.Mutex // guards all below
	file *os.File
	size int64
	next int64
}

// Open opens or makes the file at path. The older half is beside it, as path.1.
func Open(path string, cfg Config) (*Log, error) {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = maxBytes
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Log{path: path, cfg: cfg, next: 1}
	for _, name := range []string{path + oldFile, path} {
		err := read(name, func(e *Entry) { l.next = max(l.next, e.Seq+1) })
		if err != nil {
			return nil, failed(err)
		}
	}
	if err := l.open(); err != nil {
		return nil, failed(err)
	}
	return l, nil
}

func failed(err error) error { return forebay.Errorf(forebay.CodeUnavailable, "audit", "%w", err) }

// open opens the newer file to append. A line without its end is ended, so that the
// next one stands by itself.
func (l *Log) open() (err error) {
	if l.file, err = os.OpenFile(l.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600); err != nil {
		return err
	}
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	last := make([]byte, 1)
	if l.size = info.Size(); l.size > 0 {
		if _, err = l.file.ReadAt(last, l.size-1); err == nil && last[0] != '\n' {
			_, err = l.file.WriteString("\n")
			l.size++
		}
	}
	return err
}

// Add keeps an entry; its Seq and At are set here.
func (l *Log) Add(e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return forebay.Errorf(forebay.CodeClosed, "audit", "the log is closed")
	}
	e.Seq, e.At = l.next, l.cfg.Now().UTC()
	line, err := json.Marshal(e)
	if err == nil && len(line) > maxLine { // what was asked is the part without a bound of its own
		e.Asked, e.Done = map[string]any{"cut": len(line)}, nil
		line, err = json.Marshal(e)
	}
	if err != nil {
		return failed(err)
	}
	if l.size > 0 && l.size+int64(len(line)) >= l.cfg.MaxBytes/2 {
		if err := l.turn(); err != nil {
			return failed(err)
		}
	}
	n, err := l.file.Write(append(line, '\n'))
	l.size += int64(n)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return failed(err)
	}
	l.next++
	return nil
}

// turn makes the newer file the older one.
func (l *Log) turn() error {
	err := l.file.Close()
	l.file = nil
	if err = errors.Join(err, os.Rename(l.path, l.path+oldFile)); err != nil {
		return errors.Join(err, l.open())
	}
	return l.open()
}

// Query selects entries. Zero fields select all.
type Query struct {
	Before int64 // only with a smaller Seq
	Actor  string
	Action string // part of it, or of the target
	Since  time.Time
	Limit  int // 1 to MaxList; 0: MaxList
}

func (q *Query) matches(e *Entry) bool {
	return (q.Before == 0 || e.Seq < q.Before) &&
		strings.Contains(e.Actor, q.Actor) &&
		(strings.Contains(e.Action, q.Action) || strings.Contains(e.Target, q.Action)) &&
		!e.At.Before(q.Since)
}

// List gives entries, newest first.
func (l *Log) List(q Query) ([]Entry, error) {
	if q.Limit <= 0 || q.Limit > MaxList {
		q.Limit = MaxList
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil, forebay.Errorf(forebay.CodeClosed, "audit", "the log is closed")
	}
	var last []Entry // a ring: the newest Limit of those that match
	n := 0
	for _, name := range []string{l.path + oldFile, l.path} {
		err := read(name, func(e *Entry) {
			if !q.matches(e) {
				return
			}
			if len(last) < q.Limit {
				last = append(last, *e)
			} else {
				last[n%q.Limit] = *e
			}
			n++
		})
		if err != nil {
			return nil, failed(err)
		}
	}
	newest := make([]Entry, 0, len(last))
	for i := range last {
		newest = append(newest, last[(n-1-i)%q.Limit])
	}
	return newest, nil
}

// read gives the entries of a file, oldest first. A line that is none is passed over.
func read(name string, each func(*Entry)) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 2*maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		var e Entry
		if len(bytes.TrimSpace(line)) > 0 && json.Unmarshal(line, &e) == nil && e.Seq > 0 {
			each(&e)
		}
		switch {
		case err == nil || errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
