package api

import (
	"context"
	"sync"
	"time"

	"github.com/forebayhq/forebay/engine"
)

// Arrivals say when the dead letters of a group came, in equal parts of a time up to now.
type Arrivals struct {
	From   time.Time `json:"from" doc:"When the first part begins."`
	Whole  time.Time `json:"whole" doc:"Since when none is left out: only the newest of a large group are looked at."`
	Counts []int     `json:"counts" nullable:"false" doc:"Of those that are there, by part, the oldest first."`
}

// Bounds of what is read for arrivals.
const (
	arrivalParts   = 24
	arrivalLetters = 200  // of a group: the newest
	arrivalReads   = 20   // groups that are read for one request; what has not changed is known
	arrivalGroups  = 1000 // that are remembered
)

var arrivalSpans = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

// arrivals remembers when the newest dead letters of groups came, for as long as a group
// stays as it is, so that a screen that asks again and again reads little.
type arrivals struct {
	mu    sync.Mutex
	known map[uint64]arrived
}

type arrived struct {
	count int64     // of the group, and its last, when it was read
	last  time.Time //
	at    []time.Time
}

func (a *arrivals) of(g *engine.DeadGroup) (arrived, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.known[g.Fingerprint]
	return v, ok && v.count == g.Count && v.last.Equal(g.Last)
}

func (a *arrivals) put(g *engine.DeadGroup, at []time.Time) arrived {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= arrivalGroups {
		a.known = map[uint64]arrived{}
	}
	v := arrived{g.Count, g.Last, at}
	a.known[g.Fingerprint] = v
	return v
}

// arrivalsOf are those of groups; nil where too many have changed to look at all of them now.
func (a *API) arrivalsOf(ctx context.Context, groups []engine.DeadGroup, trend string) ([]*Arrivals, error) {
	all := make([]*Arrivals, len(groups))
	to, reads := a.cfg.Now().UTC(), 0
	for i := range groups {
		g := &groups[i]
		v, known := a.arrived.of(g)
		if !known {
			if reads++; reads > arrivalReads {
				continue
			}
			letters, err := a.cfg.Broker.Dead(ctx, engine.DeadQuery{Queue: g.Queue, Group: g.Fingerprint, Limit: arrivalLetters})
			if err != nil {
				return nil, err
			}
			at := make([]time.Time, len(letters))
			for n := range letters {
				at[n] = letters[n].DiedAt
			}
			v = a.arrived.put(g, at)
		}
		all[i] = partsOf(v, to, arrivalSpans[trend])
	}
	return all, nil
}

func partsOf(v arrived, to time.Time, span time.Duration) *Arrivals {
	from := to.Add(-span)
	p := &Arrivals{From: from, Whole: from, Counts: make([]int, arrivalParts)}
	for _, at := range v.at {
		if !at.Before(from) && !at.After(to) {
			p.Counts[min(arrivalParts-1, int(at.Sub(from)*arrivalParts/span))]++
		}
	}
	if n := len(v.at); n > 0 && v.count > int64(n) && v.at[n-1].After(from) {
		p.Whole = v.at[n-1].UTC()
	}
	return p
}
