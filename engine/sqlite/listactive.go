package sqlite

import (
	"cmp"
	"slices"

	"github.com/forebayhq/forebay"
)

// candidate is a leased job that may be meant.
type candidate struct {
	ls       *lease
	it       *item
	seq, idx int64
}

// active lists what is leased, newest first. One look at all that is leased, then
// the ones that may be meant, some at a time.
func (w *walk) active() (end bool, err error) {
	all, err := ask(w.ctx, w.e, func(t *tx) ([]candidate, error) {
		var all []candidate
		for _, ls := range t.l.leases {
			if w.filter.Queue != "" && ls.q.name != w.filter.Queue {
				continue
			}
			for i := range ls.items {
				it := &ls.items[i]
				c := candidate{ls, it, seqOf(it.key), int64(it.idx)}
				if it.job && it.state != itemEnded && w.at.before(c.seq, c.idx) && (it.blk.data == nil || w.sieve.may(it.blk.body(it.idx))) {
					all = append(all, c)
				}
			}
		}
		return all, nil
	})
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.seq, a.seq), cmp.Compare(b.idx, a.idx))
	})
	for len(all) > 0 && err == nil {
		if w.spent() {
			return false, nil
		}
		n := min(len(all), sliceRows)
		err = w.leased(all[:n])
		all = all[n:]
	}
	return len(w.jobs) < w.limit, err
}

// leased tells of some that are leased.
func (w *walk) leased(some []candidate) error {
	type seen struct {
		job      forebay.Job
		seq, idx int64
	}
	jobs, err := ask(w.ctx, w.e, func(t *tx) ([]seen, error) {
		var jobs []seen
		for _, c := range some {
			if c.it.state == itemEnded {
				continue
			}
			job, err := t.l.leasedJob(c.ls.q, c.it, t.now)
			if forebay.CodeOf(err) == forebay.CodeDamaged {
				continue // what can be read is listed
			}
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, seen{job, c.seq, c.idx})
		}
		return jobs, nil
	})
	for i := range jobs {
		w.reads += len(jobs[i].job.Payload)
		if !w.see(&jobs[i].job, jobs[i].seq, jobs[i].idx) {
			break
		}
	}
	return err
}

func (l *loop) leasedJob(q *queue, it *item, now int64) (forebay.Job, error) {
	live := liveJob{q: q, ref: it.ref, it: it}
	body, _, err := l.bodyOf(&it.ref)
	if err == errUnreadable {
		err = forebay.Errorf(forebay.CodeDamaged, "sqlite: job", "%w", err)
	}
	if err != nil {
		return forebay.Job{}, err
	}
	live.body = body
	failures := ""
	if it.stored && it.attempts > 0 {
		if failures, err = l.failures(&it.ref); err != nil {
			return forebay.Job{}, err
		}
	}
	return live.job(failures, now)
}
