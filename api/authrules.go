package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/flow"
)

// asking is a request of somebody whose key holds for some queues only.
type asking struct {
	a    *API
	ctx  context.Context
	r    *http.Request
	path map[string]string // what the path names
}

// right says whether such a request may go on.
type right func(q *asking) error

// rights are those of each route. One that is not here is for keys that hold for all queues.
var rights = map[string]right{
	"GET /api/queues":                    within,
	"GET /api/queues/{name}":             ofQueue("name"),
	"POST /api/queues/{name}/pause":      ofQueue("name"),
	"POST /api/queues/{name}/resume":     ofQueue("name"),
	"GET /api/queues/{name}/limits":      ofQueue("name"),
	"PUT /api/queues/{name}/limits":      ofQueue("name"),
	"PUT /api/queues/{name}/concurrency": ofQueue("name"),
	"GET /api/queues/{name}/messages":    ofQueue("name"),
	"GET /api/queues/{name}/durations":   ofQueue("name"),
	"POST /api/queues/{name}/lease":      ofQueue("name"),
	"GET /api/scaling":                   within,
	"GET /api/scaling/{queue}":           ofQueue("queue"),
	"GET /api/workers":                   within,
	"GET /api/handlers":                  within,

	"PUT /api/queues/{name}/handlers/{handler}":    ofQueue("name"),
	"DELETE /api/queues/{name}/handlers/{handler}": ofQueue("name"),

	"GET /api/health":   within,
	"GET /api/overview": within,
	"GET /api/alerts":   within,

	"GET /api/jobs":               within,
	"POST /api/jobs":              within,
	"POST /api/jobs/bulk":         within,
	"POST /api/jobs/actions":      within,
	"GET /api/jobs/{id}":          ofJob,
	"GET /api/jobs/{id}/progress": ofJob,
	"GET /api/jobs/{id}/result":   ofJob,
	"GET /api/jobs/{id}/history":  ofJob,
	"GET /api/jobs/{id}/logs":     ofJob,
	"GET /api/jobs/{id}/stream":   ofJob,
	"GET /api/jobs/{id}/events":   ofJob,
	"POST /api/jobs/{id}/cancel":  ofJob,
	"POST /api/jobs/{id}/retry":   ofJob,
	"POST /api/jobs/{id}/promote": ofJob,
	"PATCH /api/jobs/{id}":        ofJob,
	"DELETE /api/jobs/{id}":       ofJob,
	"POST /api/leases/extend":     within,
	"POST /api/leases/progress":   within,
	"POST /api/leases/settle":     within,

	"GET /api/dead":                                     within,
	"GET /api/dead/{seq}":                               ofDead,
	"POST /api/dead/{seq}/replay":                       ofDead,
	"POST /api/dead/replay":                             within,
	"POST /api/dead/discard":                            within,
	"GET /api/dead/groups":                              within,
	"GET /api/dead/actions":                             within,
	"POST /api/dead/actions":                            within,
	"GET /api/dead/actions/{id}":                        ofAction,
	"POST /api/dead/actions/{id}/pause":                 ofAction,
	"POST /api/dead/actions/{id}/cancel":                ofAction,
	"POST /api/dead/actions/{id}/resume":                ofAction,
	"POST /api/dead/elsewhere/{queue}/redrive":          ofQueue("queue"),
	"DELETE /api/dead/elsewhere/{queue}/redrive/{task}": ofQueue("queue"),
	"GET /api/history":                                  within,
	"POST /api/history/replay":                          within,
	"GET /api/stream":                                   within,
	"POST /api/stream-tickets":                          free, // the stream itself is asked for
	"GET /api/bad":                                      ofEvents,
	"GET /api/bad/{seq}":                                ofEvents,
	"POST /api/bad/replay":                              ofEvents,
	"POST /api/bad/discard":                             ofEvents,
	"GET /api/events/{id}":                              ofEvents,
	"GET /api/schedules":                                within,
	"PUT /api/schedules/{name}":                         within,
	"GET /api/schedules/{name}":                         ofSchedule,
	"DELETE /api/schedules/{name}":                      ofSchedule,
	"POST /api/schedules/{name}/pause":                  ofSchedule,
	"POST /api/schedules/{name}/resume":                 ofSchedule,
	"POST /api/schedules/{name}/run":                    ofSchedule,
	"GET /api/schedules/{name}/preview":                 ofSchedule,
	"POST /api/schedules/preview":                       free,
	"GET /api/flows":                                    within,
	"PUT /api/flows/{name}":                             within,
	"POST /api/flows/validate":                          within,
	"POST /api/flows/dry-run":                           within,
	"POST /api/flows/preview":                           within,
	"POST /api/flows/format":                            free,
	"POST /api/flows/edit":                              free,
	"POST /api/flows/export":                            free,
	"POST /api/flows/import":                            free,
	"GET /api/flow-schema":                              free,
	"GET /api/flows/{name}":                             ofFlow,
	"GET /api/flows/{name}/versions":                    ofFlow,
	"POST /api/flows/{name}/versions/{version}/release": ofFlow,
	"POST /api/flows/{name}/versions/{version}/restore": ofFlow,
	"GET /api/flows/{name}/diff":                        ofFlow,
	"POST /api/flows/{name}/diff":                       ofFlow,
	"GET /api/flows/{name}/heat":                        ofFlow,
	"GET /api/flows/{name}/runs":                        ofFlow,
	"POST /api/flows/{name}/runs":                       ofFlow,
	"GET /api/runs":                                     within,
	"GET /api/runs/{id}":                                ofRun,
	"GET /api/runs/{id}/stream":                         ofRun,
	"POST /api/runs/{id}/pause":                         ofRun,
	"POST /api/runs/{id}/resume":                        ofRun,
	"POST /api/runs/{id}/cancel":                        ofRun,
	"POST /api/runs/{id}/retry":                         ofRun,
	"POST /api/runs/{id}/skip":                          ofRun,
	"POST /api/runs/{id}/discard":                       ofRun,
	"POST /api/runs/{id}/approve":                       ofRun,
	"GET /api/views":                                    within,
	"POST /api/views":                                   within,
	"DELETE /api/views/{id}":                            within,
	"GET /api/session":                                  free,
	"POST /api/session":                                 free,
	"DELETE /api/session":                               free,
	"/api/":                                             free, // there is no such route
}

// within leaves it to the route: what it shows and does depends on more than its path.
func within(*asking) error { return nil }

// free is for what touches no queue.
func free(*asking) error { return nil }

func ofQueue(name string) right {
	return func(q *asking) error { return mustHold(q.ctx, q.path[name]) }
}

// ofEvents is for what is of events, also of those that never came to their queue.
func ofEvents(q *asking) error { return mustHold(q.ctx, event.Queue) }

// ofJob is as if a job of another queue were not there.
func ofJob(q *asking) error {
	id := q.path["id"]
	j, err := q.a.cfg.Broker.Job(q.ctx, id)
	if err == nil && !holds(q.ctx, j.Queue) && !(q.r.Method == http.MethodGet && q.a.theirs(q.ctx, &j)) {
		err = forebay.Errorf(forebay.CodeNotFound, "", "no job has the id %q", id)
	}
	return err
}

func ofDead(q *asking) error {
	seq, err := strconv.ParseInt(q.path["seq"], 10, 64)
	if err != nil {
		return nil // no number: the route says so
	}
	d, err := q.a.cfg.Broker.DeadLetter(q.ctx, seq)
	if err == nil && !holds(q.ctx, d.Message.Queue) {
		err = forebay.Errorf(forebay.CodeNotFound, "", "there is no dead letter %d", seq)
	}
	return err
}

func ofAction(q *asking) error {
	id := q.path["id"]
	s, err := loadDead(q.ctx, q.a.cfg.Broker, id)
	if err == nil && !s.held(q.ctx) {
		err = forebay.Errorf(forebay.CodeNotFound, "", "there is no action %q on dead letters", id)
	}
	return err
}

// held tells whether a caller may see and steer an action.
func (s *deadState) held(ctx context.Context) bool {
	return holdsAll(ctx) || s.Filter.Queue != "" && holds(ctx, s.Filter.Queue) && (s.Into == "" || holds(ctx, s.Into))
}

func ofSchedule(q *asking) error {
	if q.a.cfg.Schedules == nil {
		return nil
	}
	name := q.path["name"]
	s, err := q.a.cfg.Schedules.Get(q.ctx, name)
	if err == nil && !holds(q.ctx, s.Job.Queue) {
		err = forebay.Errorf(forebay.CodeNotFound, "", "there is no schedule %q", name)
	}
	return err
}

// ofFlow is for those who hold for all queues that its versions send to.
func ofFlow(q *asking) error {
	if q.a.cfg.Flows == nil {
		return nil
	}
	name := q.path["name"]
	latest, err := q.a.cfg.Flows.Latest(q.ctx, name)
	if err != nil {
		return err
	}
	for version := latest; version > 0; version-- {
		ok, err := q.a.holdsFlow(q.ctx, name, version)
		if err != nil {
			return err
		}
		if !ok {
			return forebay.Errorf(forebay.CodeNotFound, "", "there is no flow %q", name)
		}
	}
	return nil
}

func ofRun(q *asking) error {
	if q.a.cfg.Flows == nil {
		return nil
	}
	id := q.path["id"]
	r, err := q.a.cfg.Flows.Get(q.ctx, id)
	if err != nil {
		return err
	}
	ok, err := q.a.holdsFlow(q.ctx, r.Flow, r.Version)
	if err == nil && !ok {
		err = forebay.Errorf(forebay.CodeNotFound, "", "no run has the id %q", id)
	}
	return err
}

// holdsFlow tells whether a caller holds for all queues that a version of a flow sends to.
func (a *API) holdsFlow(ctx context.Context, name string, version int) (bool, error) {
	if holdsAll(ctx) {
		return true, nil
	}
	plan, err := a.cfg.Flows.Plan(ctx, name, version)
	if err != nil {
		return false, err
	}
	return a.holdsSteps(ctx, plan.Definition, nil)
}

// holdsSteps is holdsFlow for a definition, with what it runs in turn; seen are the flows
// that run it.
func (a *API) holdsSteps(ctx context.Context, d *flow.Definition, seen []string) (bool, error) {
	for i := range d.Steps {
		for _, queue := range queuesOf(&d.Steps[i]) {
			if !holds(ctx, queue) {
				return false, nil
			}
		}
	}
	seen = append(seen[:len(seen):len(seen)], d.Name)
	for i := range d.Steps {
		sub := d.Steps[i].Flow
		if sub.Name == "" || slices.Contains(seen, sub.Name) {
			continue
		}
		plan, err := a.cfg.Flows.Plan(ctx, sub.Name, sub.Version)
		if forebay.CodeOf(err) == forebay.CodeNotFound {
			return false, nil // nobody knows yet where it will send to
		}
		if err != nil {
			return false, err
		}
		if ok, err := a.holdsSteps(ctx, plan.Definition, seen); !ok {
			return false, err
		}
	}
	return true, nil
}

// queuesOf are the queues that a step sends to.
func queuesOf(s *flow.Step) (all []string) {
	if s.Kind == flow.KindJob {
		all = append(all, cmp.Or(s.Queue, flow.DefaultQueue))
	}
	if s.Kind == flow.KindEmit {
		all = append(all, cmp.Or(s.Queue, event.Queue))
	}
	if c := s.Compensate; c != nil {
		all = append(all, cmp.Or(c.Queue, flow.DefaultQueue))
	}
	return all
}

// mayWrite refuses a file of a flow to whoever does not hold for all queues that it sends to.
func (a *API) mayWrite(ctx context.Context, src []byte) error {
	if holdsAll(ctx) {
		return nil
	}
	d, _ := flow.Parse(src)
	if d == nil {
		return nil // it is not sound, which whoever reads it says
	}
	ok, err := a.holdsSteps(ctx, d, nil)
	if err == nil && !ok {
		err = notHeld(ctx, "all that the flow sends to")
	}
	return err
}

// within refuses what is not of the queues that the caller's key holds for.
func (a *API) within(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !holdsAll(r.Context()) {
			pattern := r.Pattern
			if mux != nil {
				_, pattern = mux.Handler(r)
			}
			may := rights[pattern]
			if may == nil {
				notHeld(r.Context(), "what concerns all of them").write(w)
				return
			}
			if err := may(&asking{a, r.Context(), r, named(pattern, r.URL)}); err != nil {
				problemOf(err).write(w)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// named is what a path names, by the pattern that it matches.
func named(pattern string, u *url.URL) map[string]string {
	_, pattern, _ = strings.Cut(pattern, " ")
	names := map[string]string{}
	parts := strings.Split(u.EscapedPath(), "/")
	for i, part := range strings.Split(pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok && i < len(parts) {
			names[strings.TrimSuffix(name, "}")], _ = url.PathUnescape(parts[i]) // the mux has taken it
		}
	}
	return names
}
