package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/history"
	"github.com/forebayhq/forebay/keyring"
)

// A key may hold for some queues only. What of the others it asks for is refused, or as if
// it were not there, where its id alone would tell something. Lists show what is of its
// queues. authrules.go says of each route who looks at that, and where.

// visitor is who makes a call.
type visitor struct {
	who string
	key keyring.Key // zero: none was needed, or the token of this start was shown
}

type heldKey struct{}

// withHeld notes in a context for which queues a caller's key holds; none: for all.
func withHeld(ctx context.Context, queues []string) context.Context {
	if len(queues) == 0 {
		return ctx
	}
	return context.WithValue(ctx, heldKey{}, queues)
}

func heldBy(ctx context.Context) []string {
	queues, _ := ctx.Value(heldKey{}).([]string)
	return queues
}

// holdsAll tells whether a caller may ask for all queues.
func holdsAll(ctx context.Context) bool { return len(heldBy(ctx)) == 0 }

// ownQueues are those where our own jobs act on other queues. Keys that hold for some
// queues hold for none of them, whatever they say: a job there could do anything.
var ownQueues = []string{BulkQueue, history.Queue, runner.DefaultQueue, runner.DefaultQueue + "-advance"}

// holds tells whether a caller may ask for a queue.
func holds(ctx context.Context, queue string) bool {
	return holdsAll(ctx) || !slices.Contains(ownQueues, queue) && keyring.Key{Queues: heldBy(ctx)}.Holds(queue)
}

// notHeld refuses what is of a queue that the caller's key does not hold for.
func notHeld(ctx context.Context, what string) *Problem {
	p := newProblem(http.StatusForbidden, forebay.CodeUnauthorized, fmt.Sprintf("the key holds for %s only, not for %s", strings.Join(heldBy(ctx), ", "), what))
	p.Hint = "forebay keys add --queues makes a key for other queues; without it, for all"
	return p
}

// mustHold is notHeld for a queue, unless it is held.
func mustHold(ctx context.Context, queue string) error {
	if holds(ctx, queue) {
		return nil
	}
	return notHeld(ctx, "the queue "+queue)
}

// mustAdd refuses a new job in a queue that the caller's key does not hold for.
func mustAdd(ctx context.Context, m *forebay.Message) error {
	if err := mustHold(ctx, m.Queue); err != nil {
		return err
	}
	return mustClaim(ctx, m.Headers)
}

// mustClaim refuses headers by which a job says that it is a step of a run: the run acts on
// other queues.
func mustClaim(ctx context.Context, headers map[string]string) error {
	if holdsAll(ctx) || runner.StepHeaders(headers) == nil {
		return nil
	}
	return notHeld(ctx, "steps of runs")
}

// heldQueues are the queues that are there and that the caller's key holds for, by name.
func (a *API) heldQueues(ctx context.Context) ([]string, error) {
	stats, err := a.cfg.Broker.Stats(ctx)
	var names []string
	for i := range stats {
		if holds(ctx, stats[i].Queue) {
			names = append(names, stats[i].Queue)
		}
	}
	slices.Sort(names)
	return names, err
}

// oneQueue is the queue that something is to be done with which is for one queue or all:
// the one that is named, or the only one that the caller's key holds for. Empty: all, which
// is for those that may.
func (a *API) oneQueue(ctx context.Context, queue string) (string, error) {
	if holdsAll(ctx) {
		return queue, nil
	}
	if queue != "" {
		return queue, mustHold(ctx, queue)
	}
	names, err := a.heldQueues(ctx)
	switch {
	case err != nil:
		return "", err
	case len(names) == 1:
		return names[0], nil
	}
	return "", notHeld(ctx, "all queues; name one")
}

// askedQueues is how many queues a page may be put together from.
const askedQueues = 64

// byQueue makes a page of the pages of one queue after the other, for those whose keys
// hold for some only. Its places are <queue>:<place>.
func byQueue[T any](ctx context.Context, a *API, after string, limit int, page func(queue, after string, limit int) ([]T, string, error)) (items []T, next string, err error) {
	names, err := a.heldQueues(ctx)
	if err != nil {
		return nil, "", err
	}
	at, place, _ := strings.Cut(after, ":")
	i, _ := slices.BinarySearch(names, at)
	for asked := 0; i < len(names) && len(items) < limit; i++ {
		if asked++; asked > askedQueues {
			break
		}
		if names[i] != at {
			place = ""
		}
		some, on, err := page(names[i], place, limit-len(items))
		if err != nil {
			return nil, "", err
		}
		if items = append(items, some...); on != "" {
			return items, names[i] + ":" + on, nil
		}
	}
	if i < len(names) {
		next = names[i] + ":"
	}
	return items, next, nil
}

// jobsPage is a page of jobs that the caller may see.
func (a *API) jobsPage(ctx context.Context, q engine.JobQuery) (engine.JobPage, error) {
	switch {
	case holdsAll(ctx):
		return a.cfg.Broker.Jobs(ctx, q)
	case q.Filter.Queue != "" && !holds(ctx, q.Filter.Queue):
		return engine.JobPage{}, nil
	case q.Filter.Queue != "":
		return a.cfg.Broker.Jobs(ctx, q)
	}
	jobs, next, err := byQueue(ctx, a, q.After, q.Limit, func(queue, after string, limit int) ([]forebay.Job, string, error) {
		q.Filter.Queue, q.After, q.Limit = queue, after, limit
		page, err := a.cfg.Broker.Jobs(ctx, q)
		return page.Jobs, page.Next, err
	})
	return engine.JobPage{Jobs: jobs, Next: next}, err
}

// deadPage are dead letters that the caller may see, the newest first.
func (a *API) deadPage(ctx context.Context, q engine.DeadQuery) ([]forebay.DeadLetter, error) {
	switch {
	case holdsAll(ctx):
		return a.cfg.Broker.Dead(ctx, q)
	case q.Queue != "" && !holds(ctx, q.Queue):
		return nil, nil
	case q.Queue != "":
		return a.cfg.Broker.Dead(ctx, q)
	}
	names, err := a.heldQueues(ctx)
	var all []forebay.DeadLetter
	for _, q.Queue = range names {
		some, err := a.cfg.Broker.Dead(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(x, y forebay.DeadLetter) int { return int(min(max(y.Seq-x.Seq, -1), 1)) })
	if q.Limit > 0 {
		all = all[:min(len(all), q.Limit)]
	}
	return all, err
}

// groupsPage are groups of dead letters that the caller may see.
func (a *API) groupsPage(ctx context.Context, q engine.DeadGroupQuery) (page engine.DeadGroupPage, partial bool, err error) {
	switch {
	case holdsAll(ctx):
		return a.cfg.Broker.DeadGroups(ctx, q)
	case q.Queue != "" && !holds(ctx, q.Queue):
		return page, false, nil
	case q.Queue != "":
		return a.cfg.Broker.DeadGroups(ctx, q)
	}
	page.Groups, page.Next, err = byQueue(ctx, a, q.After, q.Limit, func(queue, after string, limit int) ([]engine.DeadGroup, string, error) {
		q.Queue, q.After, q.Limit = queue, after, limit
		some, cut, err := a.cfg.Broker.DeadGroups(ctx, q)
		partial = partial || cut
		return some.Groups, some.Next, err
	})
	return page, partial, err
}

// theirs tells a job of our own that does something for the caller, who may follow it.
func (a *API) theirs(ctx context.Context, j *forebay.Job) bool {
	if j.Queue != BulkQueue {
		return false
	}
	switch j.Kind {
	case BulkKind:
		var data bulkData
		return decode(j.Payload, &data) == nil && data.By == caller(ctx)
	case DeadKind:
		var data deadData
		if decode(j.Payload, &data) != nil {
			return false
		}
		s, err := loadDead(ctx, a.cfg.Broker, data.Action)
		return err == nil && s.By == caller(ctx)
	}
	return false
}
