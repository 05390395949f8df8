package schedule

import (
	"hash/fnv"
	"sync"
	"time"
)

// jitterOf is how long after its tick a job begins: the same for whoever asks.
func (d *Definition) jitterOf(id string) time.Duration {
	if d.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(id)) // a hash takes all
	return time.Duration(h.Sum64() % uint64(d.Jitter+1)).Truncate(time.Millisecond)
}

// zones keeps the zones that were asked for: to find one is to read a file.
type zones struct {
	mu    sync.Mutex
	known map[string]*time.Location
}

func (z *zones) find(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if loc := z.known[name]; loc != nil {
		return loc, nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" || len(name) > 64 {
		return nil, wrong("timezone", "the time zone %.64q is not known; names such as Europe/Berlin, America/New_York or UTC are allowed", name)
	}
	if z.known == nil {
		z.known = map[string]*time.Location{}
	}
	z.known[name] = loc
	return loc, nil
}

// plan is a definition that was understood.
type plan struct {
	Definition
	ticks ticks
	zone  *time.Location // in which times are shown
}

// plan understands a sound definition. since is when the schedule was made.
func (z *zones) plan(d Definition, since time.Time) (*plan, error) {
	zone, err := z.find(d.Timezone)
	if err != nil {
		return nil, err
	}
	p := &plan{Definition: d, zone: zone}
	if d.Cron == "" {
		p.ticks = ticks{every: d.Every, everyAt: since.Truncate(time.Second)}
		if !d.Start.IsZero() {
			p.ticks.everyAt, p.ticks.fromZero = d.Start, true
		}
		return p, nil
	}
	spec, err := parseCron(d.Cron)
	if err != nil {
		return nil, err
	}
	p.ticks = cronTicks(spec, zone)
	return p, nil
}

// next is the first tick after a time, between start and end; zero: there is none.
func (p *plan) next(after time.Time) time.Time {
	if after.Before(p.Start) {
		after = p.Start.Add(-1)
	}
	tick := p.ticks.next(after)
	if !p.End.IsZero() && tick.After(p.End) {
		return time.Time{}
	}
	return tick
}

// preview lists the next ticks after a time, at most n.
func (p *plan) preview(after time.Time, n int) []time.Time {
	list := make([]time.Time, 0, n)
	for len(list) < n {
		tick := p.next(after)
		if tick.IsZero() {
			break
		}
		list, after = append(list, tick.In(p.zone)), tick
	}
	return list
}

// maxCounted bounds how many ticks are counted that nobody will run, and keptTicks
// how many are told: those that can run, and the one before.
const (
	maxCounted = 10_000
	keptTicks  = MaxCatchUp + 1
)

// due are ticks that have come.
type due struct {
	newest []time.Time // ascending, at most keptTicks
	count  int64       // of all
	more   bool        // there are more than count
}

// due finds the ticks after a time, up to now.
func (p *plan) due(after, now time.Time) due {
	var d due
	last := after
	for d.count < maxCounted {
		tick := p.next(last)
		if tick.IsZero() || tick.After(now) {
			d.newest = d.newest[max(0, len(d.newest)-keptTicks):]
			return d
		}
		d.count++
		d.newest = keepNewest(d.newest, tick)
		last = tick
	}
	d.more = true
	d.newest = append(d.newest, p.before(last, now)...)
	d.newest = d.newest[len(d.newest)-keptTicks:]
	return d
}

// before finds the newest ticks after a time, up to now, without a look at the others.
func (p *plan) before(after, now time.Time) []time.Time {
	if !p.End.IsZero() && p.End.Before(now) {
		now = p.End
	}
	for back := keptTicks * time.Second; ; back *= 2 {
		from := now.Add(-back)
		all := !from.After(after)
		if all {
			from = after
		}
		var list []time.Time
		for tick := p.next(from); !tick.IsZero() && !tick.After(now); tick = p.next(tick) {
			list = keepNewest(list, tick)
		}
		if all || len(list) >= keptTicks {
			return list
		}
	}
}

// keepNewest adds a tick, and drops old ones when there are twice as many as needed.
func keepNewest(list []time.Time, tick time.Time) []time.Time {
	if len(list) == 2*keptTicks {
		list = append(list[:0], list[keptTicks:]...)
	}
	return append(list, tick)
}
