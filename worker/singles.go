package worker

import "time"

// singles hands out items one by one, a group's serially: the next one begins when the
// verdict of the one before is stored. Else that one, redelivered after a crash or an
// outage, would run after it.
type singles struct {
	concurrency int
	running     int
	ready       []*item          // may begin as soon as there is a slot, in order
	pace        time.Duration    // of handlers, a sliding mean; zero: unknown
	groups      map[string]*lane // those with an item ready, running or not settled
	behind      int              // how many wait in them
}

// lane is a group at hand.
type lane struct {
	head   *item
	behind []*item
}

func newSingles(concurrency int) *singles {
	return &singles{concurrency: concurrency, groups: make(map[string]*lane)}
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
			if l := s.groups[group]; l != nil {
				l.behind = append(l.behind, it)
				s.behind++
				continue
			}
			s.groups[group] = &lane{head: it}
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
		if it.over = true; it.gone || it.again {
			release = append(release, s.advance(it)...)
		}
	}
	return release
}

func (s *singles) left(d departure) (release []*item) {
	d.it.gone = true
	d.it.again = d.it.again || !d.stored
	if !d.it.over {
		return nil // its handler has not returned, or it waits for its turn
	}
	return s.advance(d.it)
}

// advance lets the next of a group begin, or gives away what is at hand of it, since this
// one comes again.
func (s *singles) advance(it *item) (release []*item) {
	l := s.groups[it.d.Group]
	switch {
	case l == nil || l.head != it:
		return nil
	case it.again:
		release, l.behind = l.behind, nil
		s.behind -= len(release)
	case len(l.behind) > 0:
		l.head, l.behind = l.behind[0], l.behind[1:]
		s.ready = append(s.ready, l.head)
		s.behind--
		return nil
	}
	delete(s.groups, it.d.Group)
	return release
}

func (s *singles) resize(n int) { s.concurrency = n }

func (s *singles) drop() []*item {
	all := s.ready
	for _, l := range s.groups {
		all = append(all, l.behind...)
	}
	s.ready, s.behind = nil, 0
	clear(s.groups)
	return all
}
