package engine

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
)

// Log is the ability to keep messages readable after they were settled: the
// append-only log of what was sent to a queue, for as long as its retention says.
//
//   - A message is in the log when its Send has returned, in the order of sending. It
//     is there once, however often it is handed out, retried, moved or replayed from the
//     dead letters, and settling or purging does not take it out.
//   - Places grow and are never used twice; gaps are allowed. A reader that remembers a
//     place goes on after it, also after a restart. What it has read survives power loss.
//   - What is too old, or too much, leaves in whole slices, the oldest first, however
//     many of its messages still wait; these are worked all the same.
//   - The payload of a job that was replaced while the job waited (debounce, keep last,
//     Change) may be told as it is now.
type Log interface {
	// ReadLog reads messages after a place, oldest first. With none there yet it waits
	// up to q.Wait for one, without polling. CodeUnsupported: the queue keeps no log.
	ReadLog(ctx context.Context, q LogQuery) (LogPage, error)

	// Logs tells what is kept, by queue. A queue without a log is not among them.
	Logs(ctx context.Context) ([]LogInfo, error)
}

// MaxLog is the most messages of one page of a log.
const MaxLog = 1000

// LogQuery asks for messages of one queue.
type LogQuery struct {
	Queue string
	After int64    // only with a larger Seq; negative: only what comes from now on
	Kinds []string // none: all
	ID    string   // empty: all
	Since time.Time
	Until time.Time // sent before it; the reading ends there
	Limit int       // 1 to MaxLog; 0: MaxLog
	Wait  time.Duration
}

// LogPage is a part of a log. It may be short, even empty, with More: it is where the
// work for one page ended.
type LogPage struct {
	Epoch   string // of the store: places of another one mean nothing
	Entries []LogEntry
	Next    int64 // to go on after
	Oldest  int64 // what lies up to here has left by retention: an After below is too old
	Left    int64 // messages of that time after Next, about, of all kinds: 0 in the end
	More    bool  // there is more at once
}

// LogEntry is one message as it was sent.
type LogEntry struct {
	Seq     int64
	SentAt  time.Time
	Message forebay.Message
}

// LogInfo tells how much a log holds.
type LogInfo struct {
	Queue    string
	Messages int64
	Bytes    int64
	Oldest   time.Time // when the first of them was sent; zero: none is there
	Newest   time.Time
	Age      time.Duration // how long they are kept
}

// CheckLogQuery finds the first thing that is wrong with a query.
func CheckLogQuery(q *LogQuery) error {
	switch {
	case q.Limit < 0 || q.Limit > MaxLog:
		return invalid("limit", "the limit is %d; 1 to %d are allowed, or 0 for %d", q.Limit, MaxLog, MaxLog)
	case q.Wait < 0 || q.Wait > MaxWait:
		return invalid("wait", "the wait is %s; 0 to %s are allowed", q.Wait, MaxWait)
	}
	return CheckQueue(q.Queue)
}
