package worker

import "time"

// singles hands out items one by one, a group's serially.
type singles struct {
	concurrency int
	running     int
	ready       []*item            // may begin now, in order
	groups      map[string][]*item // a key for each group with an item ready or running; behind it what waits
}

func newSingles(concurrency int) *singles {
	return &singles{concurrency: concurrency, groups: make(map[string][]*item)}
}

// room keeps what is ready and what runs, together, within the concurrency.
func (s *singles) room() int { return s.concurrency - s.running - len(s.ready) }

func (s *singles) take(items []*item) {
	for _, it := range items {
		if group := it.d.Group; group != "" {
			if behind, busy := s.groups[group]; busy {
				s.groups[group] = append(behind, it)
				continue
			}
			s.groups[group] = nil
		}
		s.ready = append(s.ready, it)
	}
}

func (s *singles) next(time.Time, bool) ([]*item, time.Time) {
	if len(s.ready) == 0 {
		return nil, time.Time{}
	}
	one := s.ready[:1:1]
	s.ready = s.ready[1:]
	s.running++
	return one, time.Time{}
}

func (s *singles) done(items []*item) (release []*item) {
	for _, it := range items {
		s.running--
		group := it.d.Group
		behind := s.groups[group]
		switch {
		case group == "":
		case it.again:
			release = append(release, behind...)
			delete(s.groups, group)
		case len(behind) > 0:
			s.ready = append(s.ready, behind[0])
			s.groups[group] = behind[1:]
		default:
			delete(s.groups, group)
		}
	}
	return release
}

func (s *singles) drop() []*item {
	all := s.ready
	for _, behind := range s.groups {
		all = append(all, behind...)
	}
	s.ready = nil
	clear(s.groups)
	return all
}
