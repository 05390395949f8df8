package broker

import (
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// Alerts says who is told of failures for good, of timeouts and of overdue jobs: a
// job of kind AlertKind in a queue of its own, whose handler passes it on.
type Alerts struct {
	Queue  string // AlertQueue, for most; empty: nobody is told
	Growth Growth
}

const (
	AlertQueue = "notifications"
	AlertKind  = "alert"
)

// Alert is the payload of an alert.
type Alert struct {
	ID       string    `json:"id"` // of the job or message; of the last one, where Count is more than one; empty where a queue is meant
	Queue    string    `json:"queue"`
	Name     string    `json:"name"` // its kind
	Error    string    `json:"error"`
	Code     string    `json:"code"`
	Attempts int       `json:"attempts"`
	Reason   string    `json:"reason"` // AlertDead, AlertTimeout, AlertOverdue, AlertGrowth, AlertDropped
	Owner    string    `json:"owner,omitempty"`
	Count    int       `json:"count"` // how many it stands for
	At       time.Time `json:"at"`
}

// Reasons of alerts.
const (
	AlertDead    = "dead"
	AlertTimeout = "timeout" // an attempt; the job is tried again
	AlertOverdue = "overdue" // it takes longer than its estimate
	AlertGrowth  = "growth"  // the dead letters of a queue grow
	AlertDropped = "dropped" // dead letters left by a bound

	AlertRule     = "rule"     // a rule fires; Name is its name
	AlertResolved = "resolved" // it fires no more
)

// Alerts of a group (reason, queue, kind, code and owner) go out one at once, then
// one per alertEvery that says how many there were. The engine holds that too, by
// the dedup key, so that it is so over processes; ours is a little longer, so that
// the engine refuses none of ours.
const (
	alertWindow = time.Minute
	alertEvery  = alertWindow + time.Second
	alertKept   = 7 * 24 * time.Hour // waiting for a handler
	alertGroups = 100                // with a rate of their own; more share one by reason and queue
)

// alerts holds back what would be a flood.
type alerts struct {
	mu     sync.Mutex // guards all below
	groups map[string]*alertGroup
	riding map[string]time.Time // jobs whose alert rides with a verdict, until the history tells of it
	deaths map[string]Alert     // and other ends that no verdict tells of, by group, until they are told
}

const (
	mostRiding = 10_000
	mostDeaths = 100
)

type alertGroup struct {
	last time.Time // when one went out
	held *Alert    // the last one since then, for all
}

// admission is what became of one alert, so that it can be undone.
type admission struct {
	group string
	out   bool // it goes out; else it is held back
	last  time.Time
	count int // what it took over, or added
}

// admit tells whether an alert goes out now, for how many. What does not go out is
// counted, and told later.
func (a *alerts) admit(al *Alert, now time.Time) admission {
	a.mu.Lock()
	defer a.mu.Unlock()
	key, g := a.group(al, now)
	ad := admission{group: key, out: !now.Before(g.last.Add(alertEvery)), last: g.last, count: al.Count}
	if g.held != nil {
		al.Count += g.held.Count
	}
	if ad.out {
		ad.count = al.Count - ad.count
		g.last, g.held = now, nil
	} else {
		held := *al
		g.held = &held
	}
	return ad
}

func (a *alerts) group(al *Alert, now time.Time) (key string, g *alertGroup) {
	key = al.Reason + "/" + al.Queue + "/" + al.Name + "/" + al.Code + "/" + al.Owner
	if a.groups[key] == nil && len(a.groups) >= alertGroups {
		a.sweep(now)
	}
	if a.groups[key] == nil && len(a.groups) >= alertGroups {
		key = al.Reason + "/" + al.Queue
	}
	if a.groups == nil {
		a.groups = make(map[string]*alertGroup)
	}
	if a.groups[key] == nil {
		a.groups[key] = new(alertGroup)
	}
	return key, a.groups[key]
}

// undo is for an alert whose settlement was not stored: it will come again.
func (a *alerts) undo(ad admission, al Alert) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.groups[ad.group]
	switch {
	case g == nil:
	case !ad.out && g.held != nil:
		if g.held.Count -= ad.count; g.held.Count <= 0 {
			g.held = nil
		}
	case ad.out:
		g.last = ad.last
		if ad.count > 0 {
			al.Count = ad.count
			g.hold(al)
		}
	}
}

func (g *alertGroup) hold(al Alert) {
	if g.held != nil {
		al.Count += g.held.Count
	}
	g.held = &al
}

// sweep forgets groups that would not hold anything back.
func (a *alerts) sweep(now time.Time) {
	for key, g := range a.groups {
		if g.held == nil && !now.Before(g.last.Add(alertEvery)) {
			delete(a.groups, key)
		}
	}
}

// giveBack is for an alert of due that was not stored: it goes out with the next
// one of its group, or by itself.
func (a *alerts) giveBack(group string, al Alert) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := a.groups[group]; g != nil {
		g.hold(al)
	}
}

// ride notes that the death of a job has its alert.
func (a *alerts) ride(job string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.riding) >= mostRiding {
		for id, since := range a.riding {
			if now.Sub(since) > alertWindow { // its verdict was never stored, or nobody reads the history
				delete(a.riding, id)
			}
		}
	}
	if a.riding == nil {
		a.riding = make(map[string]time.Time)
	}
	if len(a.riding) < mostRiding {
		a.riding[job] = now
	}
}

// died hears of a death from the history. One that has no alert yet was decided by
// the engine: a deadline passed while nobody had the job.
func (a *alerts) died(e *forebay.HistoryEvent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, rode := a.riding[e.Job]
	delete(a.riding, e.Job)
	if rode || e.Cause == nil || len(a.riding) >= mostRiding {
		return
	}
	a.keep(Alert{
		ID: e.Job, Queue: e.Queue, Name: e.Kind, Error: e.Cause.Message, Code: e.Cause.Code,
		Attempts: e.Attempt, Reason: AlertDead, Count: 1, At: e.At,
	})
}

// heard is for what no verdict tells of, and is told soon.
func (a *alerts) heard(al Alert) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keep(al)
}

func (a *alerts) keep(al Alert) {
	key := al.Reason + "/" + al.Queue + "/" + al.Name + "/" + al.Code
	if len(a.deaths) >= mostDeaths && a.deaths[key].Count == 0 {
		key = al.Reason
	}
	if a.deaths == nil {
		a.deaths = make(map[string]Alert)
	}
	al.Count += a.deaths[key].Count
	a.deaths[key] = al
}

// takeDeaths takes what died heard.
func (a *alerts) takeDeaths() map[string]Alert {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.deaths
	a.deaths = nil
	return all
}

// due takes what was held back long enough.
func (a *alerts) due(now time.Time) map[string]Alert {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all map[string]Alert
	for key, g := range a.groups {
		if g.held == nil || now.Before(g.last.Add(alertEvery)) {
			continue
		}
		if all == nil {
			all = make(map[string]Alert)
		}
		all[key] = *g.held
		g.last, g.held = now, nil
	}
	return all
}
