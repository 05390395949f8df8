package redis

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// Bounds of what is asked at once.
const (
	setAtOnce   = 64     // entries of one set
	setsAtOnce  = 200    // sets in one round trip
	activeShown = 10_000 // active jobs of a queue that are listed
)

// set is a sorted set that is read from the top, as far as it is needed.
type set struct {
	key, queue string
	top        float64 // score of the next, or of those that are skipped first
	skip       int64   // how many of that score have been read
	have       []entry
	end        bool
}

// merged gives the entries of many sets in order.
type merged struct {
	*walk
	sets  []*set
	after entry
}

// active reads the lists of what is active: they are short and have no order of worth.
func (m *merged) active() error {
	ctx, cancel := context.WithTimeout(m.ctx, m.e.cfg.Timeout)
	defer cancel()
	pipe := m.e.client.Pipeline()
	all := make([]*goredis.StringSliceCmd, len(m.queues))
	for i, q := range m.queues {
		all[i] = pipe.LRange(ctx, m.e.key(q, "active"), 0, activeShown-1)
	}
	if len(all) > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return m.e.fault(err)
		}
	}
	for i, q := range m.queues {
		s := &set{queue: q, end: true}
		for _, id := range all[i].Val() {
			s.have = append(s.have, entry{0, q, id})
		}
		slices.SortFunc(s.have, entry.compare)
		m.sets = append(m.sets, m.unread(s))
	}
	return nil
}

// unread drops from what a set has what was listed already.
func (m *merged) unread(s *set) *set {
	i := slices.IndexFunc(s.have, func(o entry) bool { return m.after.compare(o) < 0 })
	if i < 0 {
		i = len(s.have)
	}
	s.have = s.have[i:]
	return s
}

// next gives up to n more; none: there are no more.
func (m *merged) next(n int) ([]entry, error) {
	var out []entry
	for len(out) < n {
		if err := m.fill(); err != nil {
			return nil, err
		}
		var best *set
		for _, s := range m.sets {
			if len(s.have) > 0 && (best == nil || s.have[0].compare(best.have[0]) < 0) {
				best = s
			}
		}
		if best == nil || m.before(best.have[0].score) {
			break
		}
		m.after = best.have[0]
		out, best.have = append(out, best.have[0]), best.have[1:]
	}
	return out, nil
}

// fill reads on in the sets of which nothing is at hand.
func (m *merged) fill() error {
	for {
		var empty []*set
		for _, s := range m.sets {
			if len(s.have) == 0 && !s.end && len(empty) < setsAtOnce {
				empty = append(empty, s)
			}
		}
		if len(empty) == 0 {
			return nil
		}
		if err := m.more(empty); err != nil {
			return err
		}
	}
}

func (m *merged) more(sets []*set) error {
	ctx, cancel := context.WithTimeout(m.ctx, m.e.cfg.Timeout)
	defer cancel()
	pipe := m.e.client.Pipeline()
	all := make([]*goredis.ZSliceCmd, len(sets))
	for i, s := range sets {
		all[i] = pipe.ZRevRangeByScoreWithScores(ctx, s.key, &goredis.ZRangeBy{
			Max: score(s.top), Min: "-inf", Offset: s.skip, Count: setAtOnce,
		})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return m.e.fault(err)
	}
	for i, s := range sets {
		got := all[i].Val()
		s.end = len(got) < setAtOnce
		for _, z := range got {
			if z.Score != s.top {
				s.top, s.skip = z.Score, 0
			}
			s.skip++
			q, id := s.queue, text(z.Member)
			if q == "" {
				q, id, _ = strings.Cut(id, ":")
			}
			s.have = append(s.have, entry{z.Score, q, id})
		}
		m.unread(s)
	}
	return nil
}

// score is a score as Redis reads it.
func score(f float64) string {
	if math.IsInf(f, 1) {
		return "+inf"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
