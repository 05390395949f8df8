package schedule

import (
	"time"
	_ "time/tzdata" // zones have the same times on machines that have no zone files

	"github.com/robfig/cron/v3"
)

// ticks are the times of a schedule, without its start and end: either cron's, or
// every so often.
type ticks struct {
	cron     *cron.SpecSchedule // of local times, written as if they were UTC's
	zone     *time.Location
	evenly   bool // cron's hour is every one of the day
	every    time.Duration
	everyAt  time.Time // one of the ticks of every
	fromZero bool      // everyAt itself is one
}

func cronTicks(spec *cron.SpecSchedule, zone *time.Location) ticks {
	const allHours = 1<<24 - 1
	return ticks{cron: spec, zone: zone, evenly: spec.Hour&allHours == allHours}
}

// next is the first tick after a time; zero: there is none (in the next five years).
func (k *ticks) next(after time.Time) time.Time {
	if k.cron != nil {
		return k.nextCron(after)
	}
	first := k.everyAt
	if !k.fromZero {
		first = first.Add(k.every)
	}
	if after.Before(first) {
		return first
	}
	return first.Add((after.Sub(first)/k.every + 1) * k.every)
}

// maxChanges bounds how many changes of the clocks a search goes over: 16 a year for
// the five years that cron looks ahead.
const maxChanges = 80

// nextCron searches from one change of the zone's clocks to the next: between two of
// them local time is UTC and an offset.
func (k *ticks) nextCron(after time.Time) time.Time {
	inside := after
	for range maxChanges {
		begin, end := inside.In(k.zone).ZoneBounds()
		shift := offset(inside, k.zone)
		if !begin.IsZero() && !k.evenly {
			// Until repeated, clocks show for the second time what they have shown.
			repeated := begin.Add(offset(begin.Add(-1), k.zone) - shift)
			if after.Before(repeated) {
				after = repeated.Add(-1)
			}
		}
		local := k.cron.Next(after.UTC().Add(shift))
		if local.IsZero() {
			return time.Time{}
		}
		tick := local.Add(-shift)
		if end.IsZero() || tick.Before(end) {
			return tick
		}
		if ahead := offset(end, k.zone) - shift; ahead > 0 && !k.evenly && tick.Before(end.Add(ahead)) {
			return end // its local time is left out; the first that is not is end's
		}
		inside, after = end, end.Add(-1)
	}
	return time.Time{}
}

func offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
