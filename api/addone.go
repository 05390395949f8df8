package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/ingest"
)

// adder is the route that adds one job, which is called a lot: its callers have no
// tickets, nobody asks again whether they may, and what has arrived is done though the
// caller has gone. It can take the requests of several connections together.
type adder struct {
	a    *API
	ends *ingest.Deadlines
	once http.Handler // for those with an Idempotency-Key
}

func newAdder(a *API) *adder {
	n := &adder{a: a, ends: &ingest.Deadlines{After: callTimeout * 9 / 10}} // up to a tenth later: within callTimeout
	n.once = a.Idempotent(http.HandlerFunc(n.add))
	return n
}

func (n *adder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer ingest.Unwatch(r)()
	if r = n.admit(w, r); r != nil {
		n.once.ServeHTTP(w, r)
	}
}

// Alone is for the front: an Idempotency-Key is looked up and kept, which would make
// others wait.
func (*adder) Alone(r *http.Request) bool { return len(r.Header.Values(idempotencyKey)) > 0 }

// ServeTogether does for each request what ServeHTTP does, but sends all jobs at once.
// An error of that is an error of each of them.
func (n *adder) ServeTogether(ws []http.ResponseWriter, rs []*http.Request) {
	jobs, msgs := make([]newOne, 0, len(rs)), make([]forebay.Message, 0, len(rs))
	for i, r := range rs {
		if r = n.admit(ws[i], r); r == nil {
			continue
		}
		if n.Alone(r) {
			n.once.ServeHTTP(ws[i], r)
			continue
		}
		if j, ok := n.read(ws[i], r); ok {
			jobs, msgs = append(jobs, j), append(msgs, j.msg)
		}
	}
	if len(jobs) == 0 {
		return
	}
	ctx := n.ends.Next()
	results, err := n.a.cfg.Broker.Send(ctx, msgs)
	for i := range jobs {
		var result forebay.SendResult
		if err == nil {
			result = results[i]
		}
		n.tell(ctx, &jobs[i], result, err)
	}
}

// admit gives the request of one who is let in; nil: he is not, and was told so.
func (n *adder) admit(w http.ResponseWriter, r *http.Request) *http.Request {
	v, problem := n.a.identify(r, changers)
	if problem != nil {
		refuse(w, problem)
		return nil
	}
	careful(w.Header())
	return r.WithContext(context.WithValue(withHeld(n.ends.Next(), v.key.Queues), callerKey{}, v.who))
}

// newOne is a job that is to be added.
type newOne struct {
	w       http.ResponseWriter
	msg     forebay.Message
	now     time.Time
	derived bool
	held    []string // the queues that the caller's key holds for; none: all
}

// read reads a job, or answers what is wrong with it.
func (n *adder) read(w http.ResponseWriter, r *http.Request) (j newOne, ok bool) {
	body, err := readBody(w, r, maxJobBody)
	var in NewJob
	if err == nil {
		err = decode(body, &in)
	}
	j = newOne{w: w, now: n.a.cfg.Now(), held: heldBy(r.Context())}
	if err == nil {
		in.Trace = cmp.Or(in.Trace, traceOf(r.Header))
		j.msg, err = in.message(j.now)
	}
	if err == nil {
		err = mustAdd(r.Context(), &j.msg)
	}
	if err == nil {
		err = n.a.fits(r.Context(), &j.msg)
	}
	if err != nil {
		problemOf(err).write(w)
		return j, false
	}
	j.derived = deriveID(r.Context(), &j.msg, 0)
	return j, true
}

// tell answers what became of a job.
func (n *adder) tell(ctx context.Context, j *newOne, result forebay.SendResult, err error) {
	if err == nil {
		err = refused(result.Err)
	}
	var added AddedJob
	if err == nil {
		added, err = n.a.added(withHeld(ctx, j.held), &j.msg, result, j.derived, j.now)
	}
	if err != nil {
		problemOf(err).write(j.w)
		return
	}
	j.w.Header().Set("Location", jobPath+url.PathEscape(added.JobID))
	writeJSON(j.w, http.StatusAccepted, added)
}

// add adds the job of a request that was let in.
func (n *adder) add(w http.ResponseWriter, r *http.Request) {
	j, ok := n.read(w, r)
	if !ok {
		return
	}
	results, err := n.a.cfg.Broker.Send(r.Context(), []forebay.Message{j.msg})
	var result forebay.SendResult
	if err == nil {
		result = results[0]
	}
	n.tell(r.Context(), &j, result, err)
}
