package enginetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// broken is a model whose ledger is broken where a func is set.
type broken struct {
	*Model
	send     func(msgs []forebay.Message) // changes what is sent
	settle   func(ss []forebay.Settlement)
	whole    bool                                     // one bad item spoils a send
	answers  func(errs []error)                       // changes the answers of extend
	job      func(j *forebay.Job)                     // changes what is told
	cancel   func(ids []string) []engine.CancelResult // answers instead
	change   func(c *engine.JobChange)
	progress func(updates []forebay.ProgressUpdate) []forebay.ProgressUpdate
	remove   bool // nothing is removed
	query    func(q *engine.HistoryQuery)
	page     func(p *engine.HistoryPage)
	list     func(q *engine.JobQuery)
	listed   func(p *engine.JobPage)
	limits   func(l *engine.QueueLimits)
	put      func(d *engine.Document)
}

func (b *broken) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	msgs = slices.Clone(msgs)
	for i := range msgs {
		if msgs[i].Job != nil {
			o := *msgs[i].Job
			msgs[i].Job = &o
		}
	}
	if b.send != nil {
		b.send(msgs)
	}
	res, err := b.Model.Send(ctx, msgs)
	for _, r := range res {
		if b.whole {
			err = errors.Join(err, r.Err)
		}
	}
	return res, err
}

func (b *broken) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	ss = slices.Clone(ss)
	if b.settle != nil {
		b.settle(ss)
	}
	return b.Model.Settle(ctx, ss)
}

func (b *broken) Extend(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
	errs, err := b.Model.Extend(ctx, rs, lease)
	if b.answers != nil {
		b.answers(errs)
	}
	return errs, err
}

func (b *broken) Job(ctx context.Context, id string) (forebay.Job, error) {
	j, err := b.Model.Job(ctx, id)
	if b.job != nil && err == nil {
		b.job(&j)
	}
	return j, err
}

func (b *broken) Cancel(ctx context.Context, ids []string, reason string) ([]engine.CancelResult, error) {
	if b.cancel != nil {
		return b.cancel(ids), nil
	}
	return b.Model.Cancel(ctx, ids, reason)
}

func (b *broken) Change(ctx context.Context, changes []engine.JobChange) ([]error, error) {
	changes = slices.Clone(changes)
	for i := range changes {
		if b.change != nil {
			b.change(&changes[i])
		}
	}
	return b.Model.Change(ctx, changes)
}

func (b *broken) Progress(ctx context.Context, updates []forebay.ProgressUpdate) ([]error, error) {
	if b.progress != nil {
		updates = b.progress(slices.Clone(updates))
	}
	return b.Model.Progress(ctx, updates)
}

func (b *broken) Remove(ctx context.Context, ids []string) ([]error, error) {
	if b.remove {
		return make([]error, len(ids)), nil
	}
	return b.Model.Remove(ctx, ids)
}

func (b *broken) History(ctx context.Context, q engine.HistoryQuery) (engine.HistoryPage, error) {
	if b.query != nil {
		b.query(&q)
	}
	p, err := b.Model.History(ctx, q)
	if b.page != nil {
		b.page(&p)
	}
	return p, err
}

func (b *broken) Jobs(ctx context.Context, q engine.JobQuery) (engine.JobPage, error) {
	if b.list != nil {
		b.list(&q)
	}
	p, err := b.Model.Jobs(ctx, q)
	if b.listed != nil {
		b.listed(&p)
	}
	return p, err
}

func (b *broken) SetLimits(ctx context.Context, queue string, l engine.QueueLimits) error {
	if b.limits != nil {
		b.limits(&l)
	}
	return b.Model.SetLimits(ctx, queue, l)
}

func (b *broken) PutDocument(ctx context.Context, d engine.Document) (engine.Document, error) {
	if b.put != nil {
		b.put(&d)
	}
	return b.Model.PutDocument(ctx, d)
}

// eachJob changes the options of what is sent.
func eachJob(f func(m *forebay.Message)) broken {
	return broken{send: func(msgs []forebay.Message) {
		for i := range msgs {
			if msgs[i].Job != nil {
				f(&msgs[i])
			}
		}
	}}
}

func eachEnd(f func(s *forebay.Settlement)) broken {
	return broken{settle: func(ss []forebay.Settlement) {
		for i := range ss {
			f(&ss[i])
		}
	}}
}

// without loses events of a type.
func without(typ forebay.HistoryType) broken {
	return broken{page: func(p *engine.HistoryPage) {
		p.Events = slices.DeleteFunc(p.Events, func(e forebay.HistoryEvent) bool { return e.Type == typ })
	}}
}

var brokenLedgers = []struct {
	name   string
	broken broken
	fails  string
}{
	{"loses options", eachJob(func(m *forebay.Message) { m.Job.Trace = "" }), "ledger/a job is told as it was sent"},
	{"loses the start", broken{job: func(j *forebay.Job) { j.StartedAt = time.Time{} }}, "ledger/states, attempts, deliveries and times of a life"},
	{"loses the attempt of a failure", broken{job: func(j *forebay.Job) {
		for i := range j.Failures {
			j.Failures[i].Attempt = 0
		}
	}}, "ledger/failures have their attempt, start and time"},
	{"loses progress", broken{job: func(j *forebay.Job) { j.Progress = forebay.Progress{} }}, "ledger/progress is seen at once"},
	{"loses log lines", without(forebay.HistoryLog), "ledger/progress is seen at once"},
	{"loses results", eachEnd(func(s *forebay.Settlement) { s.Result = nil }), "verdict/each is in the ledger when settle returns"},
	{"takes any result", eachEnd(func(s *forebay.Settlement) { s.Result = nil }), "verdict/a bad result refuses its item only"},
	{"completes what is cancelled", eachEnd(func(s *forebay.Settlement) {
		if s.Verdict == forebay.Cancelled {
			s.Verdict = forebay.Ack
		}
	}), "verdict/each is in the ledger when settle returns"},
	{"loses a transition", without(forebay.HistoryReleased), "history/every transition of a worked job"},
	{"loses an end", without(forebay.HistoryExpired), "history/every end"},
	{"tells the history backwards", broken{page: func(p *engine.HistoryPage) { slices.Reverse(p.Events) }}, "history/agrees with the order of what happened"},
	{"tells of all queues", broken{query: func(q *engine.HistoryQuery) { q.Queue = "" }}, "history/by job, queue and type"},
	{"does not look at the time", broken{query: func(q *engine.HistoryQuery) { q.Until = time.Time{} }}, "history/by time"},
	{"does not wait for events", broken{query: func(q *engine.HistoryQuery) { q.Wait = 0 }}, "history/waits without polling"},
	{"forgets that there is more", broken{page: func(p *engine.HistoryPage) { p.More = false }}, "history/page by page"},
	{"does not cancel", broken{cancel: func(ids []string) []engine.CancelResult {
		return slices.Repeat([]engine.CancelResult{{State: forebay.StateCancelled}}, len(ids))
	}}, "cancel/what waits is cancelled when it returns"},
	{"tells nobody to stop", broken{answers: func(errs []error) { clear(errs) }}, "cancel/whoever holds it is told, and may go on"},
	{"knows one dedup mode", eachJob(func(m *forebay.Message) { m.Job.Dedup = "" }), "dedup mode/debounce: replaces and waits anew"},
	{"locks a key for the window", eachJob(func(m *forebay.Message) { m.Job.Dedup = "" }), "dedup mode/until finished: no end leaves a lock"},
	{"throttles by being there", eachJob(func(m *forebay.Message) {
		if m.Job.Dedup == forebay.DedupThrottle {
			m.Job.Dedup = forebay.DedupUntilFinished
		}
	}), "dedup mode/throttle: by the window alone"},
	{"does not expire", eachJob(func(m *forebay.Message) { m.Job.Expires = time.Time{} }), "expiry/on time, while no consumer asks"},
	{"has no deadline", eachJob(func(m *forebay.Message) { m.Job.Deadline = time.Time{} }), "deadline/what waits is dead on time"},
	{"does not promote", broken{change: func(c *engine.JobChange) { c.Due = nil }}, "change/promoted: it may be handed out now"},
	{"keeps the priority", broken{change: func(c *engine.JobChange) { c.Priority = nil }}, "change/priority"},
	{"has one tenant", eachJob(func(m *forebay.Message) { m.Job.Tenant = "" }), "tenant/one with much waiting does not hold up another"},
	{"lets one more start", broken{limits: func(l *engine.QueueLimits) { l.Rate.Burst = 2 }}, "job limit/ten a second never lets eleven start in any one"},
	{"has no limits of keys", broken{limits: func(l *engine.QueueLimits) { l.KeyRate = engine.Rate{} }}, "job limit/nor by key"},
	{"keeps all", eachJob(func(m *forebay.Message) { m.Job.Keep = forebay.Retention{} }), "retention/by age"},
	{"keeps one too many", eachJob(func(m *forebay.Message) { m.Job.Keep.Finished.Count++ }), "retention/by count the newest are kept"},
	{"removes nothing", broken{remove: true}, "remove/finished ones only"},
	{"puts over any revision", broken{put: func(d *engine.Document) { d.Rev = engine.AnyRev }}, "document/of many who put at once one wins"},
	{"keeps documents for ever", broken{put: func(d *engine.Document) { d.Expires = time.Time{} }}, "document/gone when it expires"},
	{"lists by another order", broken{listed: func(p *engine.JobPage) { slices.Reverse(p.Jobs) }}, "listing/active, waiting, dead, finished, each newest first"},
	{"looks for texts in their case", broken{list: func(q *engine.JobQuery) {
		if strings.ToLower(q.Filter.Error) != q.Filter.Error {
			q.Filter.States = []forebay.State{"none"}
		}
	}}, "listing/finds what Match means"},
	{"does not look into payloads", broken{list: func(q *engine.JobQuery) { q.Filter.Payload = nil }}, "listing/values of payloads, the last of many too"},
	{"loses the end of a page", broken{listed: func(p *engine.JobPage) { p.Jobs = p.Jobs[:max(0, len(p.Jobs)-1)] }}, "listing/pages of every size"},
	{"spoils a call for one bad job", broken{whole: true}, "bad job/each bad option is refused by itself"},
	{"takes a bad job", eachJob(func(m *forebay.Message) { m.Job.Backoff.Jitter = 0 }), "bad job/each bad option is refused by itself"},
	{"agrees with nothing", without(forebay.HistoryCompleted), "agree/history, ledger and counts, whatever happens"},
}

func TestSuiteCatchesBrokenLedgers(t *testing.T) {
	for _, b := range brokenLedgers {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			mustFail(t, Harness{Unit: time.Second, Open: func(testing.TB) engine.Engine {
				one := b.broken
				one.Model = NewModel()
				return &one
			}}, b.fails)
		})
	}
}

// ledgers are broken in what they keep over a restart.
var ledgers = []struct {
	name   string
	reopen func(m *Model)
	fails  string
}{
	{"loses what has finished", func(m *Model) { m.o.finished = nil }, "ledger/outlives a restart"},
	{"gives places again", func(m *Model) { m.o.events = m.o.events[:len(m.o.events)-1] }, "history/places grow and are never used twice"},
	{"forgets who was asked to stop", func(m *Model) {
		for _, f := range m.o.finished {
			f.State = forebay.StateCompleted
		}
	}, "cancel/outlives a restart"},
	{"forgets keys", func(m *Model) { clear(m.o.records) }, "dedup mode/outlives a restart"},
	{"forgets expiry", func(m *Model) {
		for _, e := range m.o.entries {
			e.msg.Job.Expires = time.Time{}
		}
	}, "expiry/after a restart, on time"},
	{"forgets deadlines", func(m *Model) {
		for _, e := range m.o.entries {
			e.msg.Job.Deadline = time.Time{}
		}
	}, "deadline/after a restart, on time"},
	{"forgets changes", func(m *Model) {
		for _, e := range m.o.entries {
			e.msg.Priority = 0
		}
	}, "change/outlives a restart"},
	{"forgets tenants", func(m *Model) {
		for _, e := range m.o.entries {
			e.msg.Job.Tenant = ""
		}
	}, "tenant/outlives a restart"},
	{"forgets limits of keys", func(m *Model) { clear(m.o.limits) }, "job limit/outlives a restart"},
	{"forgets what to keep", func(m *Model) {
		for _, f := range m.o.finished {
			f.Job.Job.Keep = forebay.Retention{}
		}
	}, "retention/outlives a restart"},
	{"loses documents", func(m *Model) { clear(m.o.docs) }, "document/outlives a restart"},
	{"loses a part of the ledger", func(m *Model) { m.o.finished = m.o.finished[min(1, len(m.o.finished)):] }, "agree/over restarts too"},
}

func TestSuiteCatchesForgetfulLedgers(t *testing.T) {
	for _, s := range ledgers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			mustFail(t, Harness{
				Unit: time.Second,
				Open: func(testing.TB) engine.Engine { return NewModel() },
				Reopen: func(_ testing.TB, e engine.Engine) engine.Engine {
					m := e.(*Model).Reopen()
					s.reopen(m)
					return m
				},
			}, s.fails)
		})
	}
}
