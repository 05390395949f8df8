package sqlite

import "github.com/forebayhq/forebay"

// glance is what the loop needs to know of a body, without copying it. Its slices
// lie in the body.
type glance struct {
	id, kind          []byte
	expires, deadline int64 // 0: none
	finished, dead    forebay.Keep
}

func isJob(body []byte) bool { return len(body) > 0 && body[0]&hasJob != 0 }

// tenantOf reads the hash of a job's tenant only; 0 also for what is no job.
func tenantOf(body []byte) uint64 {
	if !isJob(body) {
		return 0
	}
	r := reader{b: body[2:]}
	if body[0]&hasGroup != 0 {
		r.u64()
	}
	if body[0]&hasLimitKey != 0 {
		r.u64()
	}
	return r.u64()
}

// glanceAt reads what the loop needs to know of a body.
func glanceAt(body []byte) (g glance, err error) {
	r := reader{b: body}
	flags := r.byte()
	r.byte()
	for _, f := range [...]byte{hasGroup, hasLimitKey, hasJob} {
		if flags&f != 0 {
			r.u64()
		}
	}
	g.id, g.kind = r.bytes(), r.bytes()
	for _, f := range [...]byte{hasGroup, hasLimitKey} {
		if flags&f != 0 {
			r.bytes()
		}
	}
	if flags&hasTime != 0 {
		r.varint()
	}
	if flags&hasDedupKey != 0 {
		r.bytes()
	}
	if flags&hasLimits != 0 {
		r.varint()
		r.varint()
		r.varint()
	}
	if flags&hasHeaders != 0 {
		for n := r.uvarint(); n > 0 && !r.bad; n-- {
			r.bytes()
			r.bytes()
		}
	}
	if flags&hasJob != 0 {
		g.options(&r)
	}
	if r.bad {
		return g, errBody
	}
	return g, nil
}

func (g *glance) options(r *reader) {
	for {
		tag, value := r.field()
		if tag == 0 || r.bad {
			return
		}
		v := reader{b: value}
		switch tag {
		case optDeadline:
			g.deadline = v.varint()
		case optExpires:
			g.expires = v.varint()
		case optKeepFinished:
			g.finished = v.keep()
		case optKeepDead:
			g.dead = v.keep()
		}
	}
}
