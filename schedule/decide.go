package schedule

import (
	"fmt"
	"time"
)

// former is what is known of the last job, where Overlap asks.
type former struct {
	job   string
	state string // empty: it has finished, or there is none
}

// decide says what becomes of the ticks that are due. It changes the state only; what
// is to be sent is pending then. It is a function of what it is given.
func (p *plan) decide(s *State, now time.Time, last former) bool {
	d := p.due(s.After, now)
	if len(d.newest) == 0 {
		return false
	}
	newest := d.newest[len(d.newest)-1]
	run := p.chosen(d.newest, now)
	skip := Outcome{Tick: newest, At: now, Code: SkipMissed}
	if len(run) > 0 {
		skip.Tick = d.newest[max(0, len(d.newest)-len(run)-1)]
	}
	limit := false
	if left := p.Limit - s.Count; p.Limit > 0 && int64(len(run)) > left {
		run, skip.Tick, limit = run[:max(0, left)], newest, true
	}
	overlaps := last.state != "" && p.Overlap == OverlapSkip && len(run) > 0
	if overlaps {
		run = nil
	}
	s.After = newest
	if skipped := d.count - int64(len(run)); skipped > 0 || d.more {
		s.Skipped += skipped
		switch {
		case overlaps:
			skip.Tick, skip.Code = newest, SkipOverlap
			skip.Reason = fmt.Sprintf("the former job %s is still %s", last.job, last.state)
		case limit:
			skip.Reason = "the limit is reached"
		default:
			skip.Reason = missedReason(skipped, d.more, len(run), now.Sub(newest))
		}
		s.Skip, s.Last = &skip, &skip
	}
	for i, tick := range run {
		one := Pending{Job: tickID(p.Name, tick), Tick: tick, At: now}
		if i == 0 && p.Overlap == OverlapCancel && last.state != "" {
			one.Cancel = last.job
		}
		s.Pending = append(s.Pending, one)
		s.LastJob = one.Job
	}
	s.Count += int64(len(run))
	return true
}

// chosen are the ticks that add a job, if nothing else is against it.
func (p *plan) chosen(newest []time.Time, now time.Time) []time.Time {
	last := newest[len(newest)-1:]
	switch {
	case p.Missed == MissedAll && p.Overlap != OverlapSkip && p.Overlap != OverlapCancel:
		return newest[max(0, len(newest)-MaxCatchUp):]
	case p.Missed == MissedSkip && now.Sub(last[0]) > OnTime:
		return nil
	}
	return last
}

func missedReason(skipped int64, more bool, ran int, late time.Duration) string {
	least := ""
	if more {
		least = "at least "
	}
	if ran == 0 {
		return fmt.Sprintf("%s%d came due while nobody saw to them; the newest is %s late", least, skipped, late.Truncate(time.Second))
	}
	return fmt.Sprintf("%s%d came due while nobody saw to them; of all that were due, %d newest run", least, skipped, ran)
}

// tickAfter is the next tick that is to be decided; zero: none, for good or while it
// is paused.
func (p *plan) tickAfter(s *State) time.Time {
	if p.Paused || p.Limit > 0 && s.Count >= p.Limit {
		return time.Time{}
	}
	return p.next(s.After)
}
