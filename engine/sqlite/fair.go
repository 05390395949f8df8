package sqlite

// Messages that are no jobs have no tenant. Those of one limit key (the group id of a
// standard queue of SQS) share their queue's first lanes with all others, until there
// are so many of them that they would hold the others up: further ones go behind, into
// lanes of a tenant that all such keys share. The two take turns, so that what few keys
// have many of costs the others one hand-out for each of their own, however many wait.
//
// It is decided when a message is sent, by a count in memory. So it costs nothing at
// the claim, and after a restart a key is known again after its next messages.

// behind is the name of that tenant. No job can name it.
const behind = "\x1fbehind"

const (
	crowdLeast = 30   // messages that a key may have in front in any case
	crowdShare = 10   // and the part, one in so many, of what is in front
	crowdKeys  = 1024 // whose messages are counted, for each queue
)

// crowd counts the messages of limit keys that are stored, about: of many keys it
// forgets those that have few (Misra and Gries).
type crowd map[uint64]int64

func (c crowd) add(key uint64) {
	if n, known := c[key]; known || len(c) < crowdKeys {
		c[key] = n + 1
		return
	}
	for k := range c {
		c.remove(k)
	}
}

func (c crowd) remove(key uint64) {
	if n := c[key]; n > 1 {
		c[key] = n - 1
	} else {
		delete(c, key)
	}
}

// fair counts a message that is sent, and puts it behind if its key has too many.
func (q *queue) fair(m *encoded) {
	if m.limitKey == 0 || m.group != 0 || m.job != nil {
		return
	}
	if q.crowd == nil {
		q.crowd = crowd{}
	}
	q.crowd.add(m.limitKey)
	if q.crowd[m.limitKey] > max(crowdLeast, q.home.total/crowdShare) {
		m.tenant = behind
	}
}

// left counts a message that is gone.
func (q *queue) left(r *ref) {
	if r.limitKey != 0 && r.group == 0 && !r.job {
		q.crowd.remove(r.limitKey)
	}
}
