package sqlite

// leaving are jobs that end without a lease, or get another place.
type leaving struct{ refs []leaver }

type leaver struct {
	q     *queue
	key   int64
	idx   int
	state byte // final; 0: none
	due   int64
	to    *ref // where it waits from now on; nil: it is gone from here
}

// note keeps what is to be done in memory; once for each, however often it changes.
func (o *leaving) note(job *liveJob, state byte, to *ref) {
	for i := range o.refs {
		if r := &o.refs[i]; r.key == job.ref.key && r.idx == job.ref.idx {
			r.state, r.to = state, to
			return
		}
	}
	o.refs = append(o.refs, leaver{job.q, job.ref.key, job.ref.idx, state, job.ref.due, to})
}

// finishWaiting ends a job that waits.
func (t *tx) finishWaiting(job *liveJob, e *ending) (err error) {
	q, r := job.q, &job.ref
	e.note = note{id: job.g.id, kind: job.g.kind, queue: q.name, attempt: r.attempts}
	if e.state == stDead {
		err = t.jobDead(q, r, e.cause, r.attempts, &e.note)
	} else {
		err = t.jobFinished(q, r, e, job.body, &job.g)
	}
	if err != nil {
		return err
	}
	t.moved.note(job, e.state, nil)
	return t.leave(r)
}

// leave takes a message that waits out of the store.
func (t *tx) leave(r *ref) error {
	b, err := t.l.meta(r.key)
	if err != nil || b == nil {
		return err
	}
	t.settle(b, r.idx)
	if r.stored {
		return t.unkeep(r)
	}
	return nil
}

// publish brings memory in line.
func (o *leaving) publish(t *tx) {
	if len(o.refs) == 0 {
		return
	}
	type place struct {
		key int64
		idx int
	}
	gone := map[*queue]map[place]bool{}
	for _, r := range o.refs {
		switch r.state {
		case stCompleted:
			r.q.completed++
		case stDead:
			r.q.dead++
		case stCancelled:
			r.q.cancelled++
		case stExpired:
			r.q.expired++
		}
		if r.due > r.q.tenantOf(r.key).later.counted {
			r.q.delayed--
		}
		if gone[r.q] == nil {
			gone[r.q] = map[place]bool{}
		}
		gone[r.q][place{r.key, r.idx}] = true
		t.l.touch(r.q)
	}
	parked := o.parked()
	for q, places := range gone {
		q.forget(t.l, func(r *ref) bool { return places[place{r.key, r.idx}] }, t.now)
	}
	for i, r := range o.refs {
		if r.to != nil {
			r.q.replace(t.l, r.to, parked[i], t.now)
		}
	}
}

// parked tells which of the moved ones their lane's cursor has met already.
func (o *leaving) parked() []bool {
	parked := make([]bool, len(o.refs))
	for i, r := range o.refs {
		if r.to == nil || r.to.group == 0 || r.q.groups[r.to.group] == nil {
			continue
		}
		for _, p := range r.q.groups[r.to.group].pending {
			parked[i] = parked[i] || p.key == r.key && p.idx == r.idx
		}
	}
	return parked
}

// replace puts a message where it waits from now on.
func (q *queue) replace(l *loop, r *ref, parked bool, now int64) {
	tn := q.tenantOf(r.key)
	tn.delay(r.due, now)
	b := l.blocks.byKey[r.key]
	switch {
	case r.group != 0 && parked:
		q.groupFor(r.group).put(l, q, r, now)
		return
	case r.group != 0:
		if b != nil {
			b.noted.set(r.idx) // its lane comes to it, and reads its row
		}
		return
	case b != nil:
		b.skip.set(r.idx)
	}
	tn.putLater(l, r)
}
