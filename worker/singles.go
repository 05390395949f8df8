package worker

import "time"

// singles hands out items one by one, a group's serially.
type singles struct {
	concurrency int
	running     int
	ready       []*item            // may begin as soon as there is a slot, in order
	pace        time.Duration      // of handlers, a sliding mean; zero: unknown
	groups      map[string][]*item // a key for each group with an item ready or running; behind it what waits
	behind      int                // how many wait there
}

func newSingles(concurrency int) *singles {
	return &singles{concurrency: concurrency, groups: make(map[string][]*item)}
}

// Handlers that are done within milliseconds would mostly wait for the next
// receive. So as much is fetched ahead as they clear in this time: little enough
// that an urgent message, or an idle worker elsewhere, does not wait longer.
const (
	ahead     = 50 * time.Millisecond
	mostAhead = 20 // times the concurrency
)

// mostBehind bounds what waits at hand for others of its group. It is not counted
// against the concurrency: a long group would leave slots empty.
const mostBehind = 2000

func (s *singles) room() int {
	want := s.concurrency
	if s.pace > 0 {
		want += s.concurrency * int(min(ahead/s.pace, mostAhead))
	}
	return min(want-s.running-len(s.ready), mostBehind-s.behind)
}

func (s *singles) take(items []*item) {
	for _, it := range items {
		if group := it.d.Group; group != "" {
			if behind, busy := s.groups[group]; busy {
				s.groups[group] = append(behind, it)
				s.behind++
				continue
			}
			s.groups[group] = nil
		}
		s.ready = append(s.ready, it)
	}
}

func (s *singles) next(time.Time, bool) ([]*item, time.Time) {
	if len(s.ready) == 0 || s.running >= s.concurrency {
		return nil, time.Time{}
	}
	one := s.ready[:1:1]
	s.ready = s.ready[1:]
	s.running++
	return one, time.Time{}
}

func (s *singles) done(items []*item, run time.Duration) (release []*item) {
	if s.pace == 0 {
		s.pace = run
	} else if run > 0 {
		s.pace += (run - s.pace) / 8
	}
	for _, it := range items {
		s.running--
		group := it.d.Group
		behind := s.groups[group]
		switch {
		case group == "":
		case it.again:
			release = append(release, behind...)
			s.behind -= len(behind)
			delete(s.groups, group)
		case len(behind) > 0:
			s.ready = append(s.ready, behind[0])
			s.groups[group] = behind[1:]
			s.behind--
		default:
			delete(s.groups, group)
		}
	}
	return release
}

func (s *singles) resize(n int) { s.concurrency = n }

func (s *singles) drop() []*item {
	all := s.ready
	for _, behind := range s.groups {
		all = append(all, behind...)
	}
	s.ready, s.behind = nil, 0
	clear(s.groups)
	return all
}
