//go:build linux

package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A plan says what the handler of a job does. It travels in the job's data, so that any
// handler knows it, also of jobs that somebody else has made (steps of flows, schedules).
type plan struct {
	Fail int  `json:"fail,omitempty"` // so many attempts fail
	Perm bool `json:"perm,omitempty"` // it is refused for good
	MS   int  `json:"ms,omitempty"`   // how long it takes
}

// verdict is what a run told its caller.
type verdict string

const (
	open    verdict = ""        // it runs
	done    verdict = "done"    // it has worked
	failed  verdict = "failed"  // an attempt has failed
	refused verdict = "refused" // it will never work
	gone    verdict = "gone"    // nobody waits for it any more
)

// run is one call of a handler. Its number is the job's result if the job ends by it.
type run struct {
	n            int
	attempt      int
	begun, ended time.Time
	verdict      verdict
}

// job is what is known of a job from outside.
type job struct {
	id, queue, key string
	plan           plan
	attempts       int // that it has
	group          *group
	place          int       // in its group, from 0
	sent           time.Time // first
	delay          time.Duration
	acked          bool
	cancelled      bool // before it began, as the server says
	cancelAsked    bool
	foreign        bool // somebody else has made it: all that is known are its runs
	runs           []*run
	failures       int // runs that failed
	final          bool
}

// group is jobs in the order in which they were added.
type group struct {
	jobs  []*job
	begun int // the last one that has begun; -1: none
}

// finding is a promise that was broken.
type finding struct {
	At      time.Time `json:"at"`
	Rule    string    `json:"rule"`
	Subject string    `json:"subject"` // a job, a run of a flow, an event or a process
	Text    string    `json:"text"`
	Beside  string    `json:"beside,omitempty"` // the other job that it is about
	History string    `json:"history,omitempty"`
}

// book knows what was acknowledged and what handlers saw. Time is handed in, so that
// its rules can be tested.
type book struct {
	mu       sync.Mutex // guards all below
	jobs     map[string]*job
	over     map[string]struct{} // jobs of earlier rounds, and those whose end was told
	groups   map[string]*group
	byKey    map[string]map[string]bool // ids that were taken as first, by dedup key
	queues   map[string][]*run          // runs of queues with limits
	keys     map[*run]string            // their limit keys
	events   eventBook
	jumps    []time.Time // of the server's clock
	findings []finding
	n        int // runs so far
	counts   counts
}

// counts are what a report tells.
type counts struct {
	EventsAcked    int `json:"eventsAcked"`
	EventsBad      int `json:"eventsRejected"`
	EventsPoison   int `json:"eventsPoison"`
	JobsAcked      int `json:"jobsAcked"`
	FlowRuns       int `json:"flowRuns"`
	ScheduleTicks  int `json:"scheduleTicks"`
	Duplicates     int `json:"duplicatesAsked"`
	Runs           int `json:"runs"`
	RunsAgain      int `json:"runsAgain"` // of a job whose former run was cut off
	RunsFailed     int `json:"runsFailed"`
	StaleSettles   int `json:"staleSettlesTried"`
	StaleRefused   int `json:"staleSettlesRefused"`
	Cancelled      int `json:"cancelled"`
	Completed      int `json:"completed"`
	Dead           int `json:"dead"`
	Retries        int `json:"requestsRepeated"`
	RowsChecked    int `json:"rowsChecked"`
	OrdersChecked  int `json:"ordersChecked"`
	WindowsChecked int `json:"windowsChecked"`
	EarlyAfterJump int `json:"delaysCutShortAfterClockJump"`
}

func newBook() *book {
	b := &book{over: map[string]struct{}{}}
	b.reset()
	return b
}

// reset begins a round. What has ended stays known as ended.
func (b *book) reset() {
	for id := range b.jobs {
		b.over[id] = struct{}{}
	}
	b.jobs, b.groups = map[string]*job{}, map[string]*group{}
	b.byKey = map[string]map[string]bool{}
	b.queues, b.keys = map[string][]*run{}, map[*run]string{}
	b.events = newEventBook()
}

func (b *book) find(at time.Time, rule, subject, format string, args ...any) {
	b.findings = append(b.findings, finding{At: at, Rule: rule, Subject: subject, Text: fmt.Sprintf(format, args...)})
}

// story tells of the runs of a job, as its handlers saw them.
func (j *job) story() string {
	var all []string
	for _, r := range j.runs {
		end := "still running"
		if !r.ended.IsZero() {
			end = r.ended.Format("15:04:05.000")
		}
		all = append(all, fmt.Sprintf("run %d %s to %s", r.n, r.begun.Format("15:04:05.000"), end))
	}
	return strings.Join(all, ", ")
}

// count changes the counts.
func (b *book) count(change func(*counts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.counts)
}

// expect notes a job before it is sent: its first run may come before the answer.
func (b *book) expect(j *job, in string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.sent = now
	b.jobs[j.id] = j
	if in == "" {
		return
	}
	g := b.groups[in]
	if g == nil {
		g = &group{begun: -1}
		b.groups[in] = g
	}
	j.group, j.place = g, len(g.jobs)
	g.jobs = append(g.jobs, j)
}

// ack notes that the server has taken a job.
func (b *book) ack(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[id]; j != nil && !j.acked {
		j.acked = true
		b.counts.JobsAcked++
	}
}

// first notes that an id was taken as the first with a dedup key.
func (b *book) first(key, id string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byKey[key] == nil {
		b.byKey[key] = map[string]bool{}
	}
	b.byKey[key][id] = true
	if len(b.byKey[key]) > 1 {
		b.find(now, "dedup", id, "the key %s was taken as new more than once: %v", key, b.byKey[key])
	}
}

// drop forgets a job that the server has refused as a duplicate.
func (b *book) drop(id string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[id]; j != nil && len(j.runs) > 0 {
		b.find(now, "dedup", id, "it was answered as a duplicate of another job, and has run")
	}
	delete(b.jobs, id)
}

// cancel notes an answer to the wish to cancel; was is the state that it told.
func (b *book) cancel(id, was string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[id]
	j.cancelAsked = true
	j.cancelled = was == "cancelled"
}

func (b *book) jumped(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jumps = append(b.jumps, now)
}

// jumpedBetween tells whether the server's clock was moved within a time.
func (b *book) jumpedBetween(from, to time.Time) bool {
	for _, at := range b.jumps {
		if !at.Before(from) && !at.After(to) {
			return true
		}
	}
	return false
}
