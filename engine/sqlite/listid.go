package sqlite

import (
	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// placedJob is a job and where it is in a listing.
type placedJob struct {
	job forebay.Job
	at  place
}

// byID lists the jobs of one id: one that has not finished, at most, and those that have.
func (w *walk) byID() error {
	found, err := ask(w.ctx, w.e, func(t *tx) ([]placedJob, error) { return t.placed(w.filter.ID) })
	if err != nil {
		return err
	}
	for i := range found {
		f := &found[i]
		if f.at.section < w.at.section || f.at.section == w.at.section && !w.at.before(f.at.seq, f.at.idx) {
			continue
		}
		if len(w.jobs) >= w.limit {
			return nil // w.at is the last that was taken
		}
		w.at = f.at
		if w.filter.Match(&f.job) {
			w.jobs = append(w.jobs, f.job)
		}
	}
	w.at = startOf(sections)
	return nil
}

func (t *tx) placed(id string) (found []placedJob, err error) {
	if len(id) > forebay.MaxIDBytes {
		return nil, nil
	}
	l := t.l
	hit, known, err := l.lookup(idDigest(id), false)
	if known && err == nil {
		known, err = l.isStored(hit.key, hit.idx)
	}
	if err != nil {
		return nil, err
	}
	if known {
		job, err := l.jobAt(hit.key, hit.idx, t.now)
		if err == nil {
			at := place{sectionWaiting, seqOf(hit.key), int64(hit.idx)}
			if job.State == forebay.StateActive {
				at.section = sectionActive
			}
			found = append(found, placedJob{job, at})
		} else if code := forebay.CodeOf(err); code != forebay.CodeNotFound && code != forebay.CodeDamaged {
			return nil, err
		}
	}
	err = l.db.each("SELECT "+deadJobColumns+" FROM dead WHERE id = ? ORDER BY seq DESC LIMIT ?", func(s *sqlite.Stmt) error {
		if job, err := l.readDeadJob(s); err == nil && job.Job != nil {
			found = append(found, placedJob{job, place{sectionDead, job.DeadSeq, 0}})
		}
		return nil
	}, id, int64(finishedPlaces))
	if err != nil {
		return nil, err
	}
	var places []int64
	err = l.db.each("SELECT at FROM finished_id WHERE h = ? ORDER BY at DESC LIMIT ?", func(s *sqlite.Stmt) error {
		places = append(places, s.ColumnInt64(0))
		return nil
	}, finishedID([]byte(id)), int64(finishedPlaces))
	for _, p := range places {
		if job, ok, err := l.finishedAt(p, t.now); err == nil && ok && job.ID == id {
			found = append(found, placedJob{job, place{sectionFinished, p >> finishedIdx, p & (1<<finishedIdx - 1)}})
		}
	}
	return found, err
}
