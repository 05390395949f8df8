package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/monitor"
)

// Queue is a queue as it is shown.
type Queue struct {
	Name             string    `json:"name"`
	Waiting          int64     `json:"waiting"`
	Active           int64     `json:"active"`
	Delayed          int64     `json:"delayed"`
	Dead             int64     `json:"dead"`
	Bytes            int64     `json:"bytes" doc:"Of waiting, active and delayed messages, where the engine knows."`
	Oldest           time.Time `json:"oldest,omitzero" doc:"When the oldest waiting message was sent."`
	OldestAgeSeconds float64   `json:"oldestAgeSeconds"`
	DrainRate        float64   `json:"drainRate" doc:"Messages that left for good, per second, over the last minute."`
	Sent             int64     `json:"sent" doc:"Since the server started, without duplicates."`
	Duplicate        int64     `json:"duplicate" doc:"Since the server started."`
	Conflict         int64     `json:"conflict" doc:"Duplicates with another payload, since the server started."`
	Completed        int64     `json:"completed" doc:"Since the server started."`
	Cancelled        int64     `json:"cancelled" doc:"Since the server started."`
	Expired          int64     `json:"expired" doc:"Since the server started."`
	Limits           *Limits   `json:"limits,omitempty" doc:"Where the engine can limit."`

	Concurrency *Concurrency `json:"concurrency,omitempty" doc:"Where this server works on it."`
}

// QueueList is all queues.
type QueueList struct {
	Items []Queue `json:"items" nullable:"false"`
}

// Limits bound what is handed out of a queue. Zero means no limit.
type Limits struct {
	Paused    bool `json:"paused,omitempty" doc:"Nothing is handed out; sending goes on."`
	Active    int  `json:"active,omitempty" minimum:"0" doc:"Most messages handed out at once."`
	Rate      Rate `json:"rate,omitzero" doc:"Most messages handed out per time."`
	KeyActive int  `json:"keyActive,omitempty" minimum:"0" doc:"The same for each limit key."`
	KeyRate   Rate `json:"keyRate,omitzero"`
}

// Rate is a token bucket.
type Rate struct {
	Count      int     `json:"count,omitempty" minimum:"0"`
	PerSeconds float64 `json:"perSeconds,omitempty" minimum:"0" doc:"0 is 1."`
	Burst      int     `json:"burst,omitempty" minimum:"0" doc:"0 is 1."`
}

// Purge confirms that all messages of a queue may go.
type Purge struct {
	Confirm string `json:"confirm" doc:"The name of the queue once more: what is dropped cannot be had again."`
}

// Purged says how many messages were dropped.
type Purged struct {
	Dropped int64 `json:"dropped"`
}

type queuePath struct {
	Name string `path:"name" maxLength:"80"`
}

func (a *API) queueRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/queues", "list-queues", "List queues"),
		func(ctx context.Context, _ *struct{}) (*answer[QueueList], error) {
			return reply(a.queues(ctx))
		})
	huma.Register(h, operation(http.MethodGet, "/api/queues/{name}", "get-queue", "Show a queue"),
		func(ctx context.Context, in *queuePath) (*answer[Queue], error) {
			return reply(a.queue(ctx, in.Name))
		})
	for verb, paused := range map[string]bool{"pause": true, "resume": false} {
		summary := map[bool]string{true: "Hand out nothing until it is resumed", false: "Hand out again"}[paused]
		huma.Register(h, operation(http.MethodPost, "/api/queues/{name}/"+verb, verb+"-queue", summary),
			func(ctx context.Context, in *queuePath) (*answer[Limits], error) {
				return reply(a.changeLimits(ctx, in.Name, func(l *engine.QueueLimits) { l.Paused = paused }))
			})
	}
	huma.Register(h, operation(http.MethodGet, "/api/queues/{name}/limits", "get-limits", "Show the limits of a queue"),
		func(ctx context.Context, in *queuePath) (*answer[Limits], error) {
			l, err := a.cfg.Broker.QueueLimits(ctx, in.Name)
			return reply(limitsOf(l), err)
		})
	huma.Register(h, operation(http.MethodPut, "/api/queues/{name}/limits", "set-limits", "Replace the limits of a queue"),
		func(ctx context.Context, in *struct {
			Name string `path:"name" maxLength:"80"`
			Body Limits
		}) (*answer[Limits], error) {
			if err := in.Body.check(); err != nil {
				return nil, problemOf(err)
			}
			return reply(a.changeLimits(ctx, in.Name, func(l *engine.QueueLimits) { *l = in.Body.engine() }))
		})
	a.peekRoute(h)
	huma.Register(h, operation(http.MethodGet, "/api/queues/{name}/durations", "queue-durations", "Tell how long handlers of a queue took on this server, by minute of the last hour"),
		func(_ context.Context, in *queuePath) (*answer[monitor.Durations], error) {
			if a.cfg.Monitor == nil {
				return reply(monitor.Durations{}, forebay.Errorf(forebay.CodeUnsupported, "", "this server measures nothing"))
			}
			return reply(a.cfg.Monitor.Durations(in.Name), nil)
		})
	huma.Register(h, operation(http.MethodPost, "/api/queues/{name}/purge", "purge-queue", "Drop all messages of a queue that are not active"),
		func(ctx context.Context, in *struct {
			Name string `path:"name" maxLength:"80"`
			Body Purge
		}) (*answer[Purged], error) {
			return reply(a.purge(ctx, in.Name, in.Body.Confirm))
		})
}

func (a *API) queues(ctx context.Context) (QueueList, error) {
	stats, err := a.cfg.Broker.Stats(ctx)
	if err != nil {
		return QueueList{}, err
	}
	list := QueueList{Items: make([]Queue, 0, len(stats))}
	for i := range stats {
		if !holds(ctx, stats[i].Queue) {
			continue
		}
		q, err := a.queueOf(ctx, &stats[i])
		if err != nil {
			return QueueList{}, err
		}
		list.Items = append(list.Items, q)
	}
	return list, nil
}

// queue shows one queue; one that never had a message is not there.
func (a *API) queue(ctx context.Context, name string) (Queue, error) {
	list, err := a.queues(ctx)
	if err != nil {
		return Queue{}, err
	}
	for _, q := range list.Items {
		if q.Name == name {
			return q, nil
		}
	}
	return Queue{}, forebay.Errorf(forebay.CodeNotFound, "", "there is no queue %q; a queue comes to be with its first message", name)
}

func (a *API) queueOf(ctx context.Context, s *forebay.QueueStats) (Queue, error) {
	q := Queue{
		Name: s.Queue, Waiting: s.Waiting, Active: s.Active, Delayed: s.Delayed, Dead: s.Dead, Bytes: s.Bytes, Oldest: s.Oldest,
		DrainRate: a.cfg.Broker.DrainRate(s.Queue), Sent: s.Sent, Duplicate: s.Duplicate, Conflict: s.Conflict, Completed: s.Completed,
		Cancelled: s.Cancelled, Expired: s.Expired, Concurrency: a.concurrencyOf(s.Queue),
	}
	if !s.Oldest.IsZero() {
		q.OldestAgeSeconds = max(0, a.cfg.Now().Sub(s.Oldest).Seconds())
	}
	l, err := a.cfg.Broker.QueueLimits(ctx, s.Queue)
	if forebay.CodeOf(err) == forebay.CodeUnsupported {
		return q, nil
	}
	limits := limitsOf(l)
	q.Limits = &limits
	return q, err
}

func (a *API) changeLimits(ctx context.Context, queue string, change func(*engine.QueueLimits)) (Limits, error) {
	a.limits.Lock()
	defer a.limits.Unlock()
	l, err := a.cfg.Broker.QueueLimits(ctx, queue)
	if err != nil {
		return Limits{}, err
	}
	change(&l)
	if err := a.cfg.Broker.SetLimits(ctx, queue, l); err != nil {
		return Limits{}, err
	}
	a.cfg.Logger.Info("api: limits of a queue changed", "queue", queue, "limits", limitsOf(l), "by", caller(ctx))
	return limitsOf(l), nil
}

func (a *API) purge(ctx context.Context, queue, confirm string) (Purged, error) {
	if confirm != queue {
		e := forebay.Errorf(forebay.CodeInvalid, "", "confirm is %q; to drop the messages of %q it must be that name", confirm, queue)
		e.Field = "confirm"
		return Purged{}, e
	}
	n, err := a.cfg.Broker.Purge(ctx, queue)
	if err == nil {
		a.cfg.Logger.Warn("api: queue purged", "queue", queue, "dropped", n, "by", caller(ctx))
	}
	return Purged{n}, err
}

func limitsOf(l engine.QueueLimits) Limits {
	rate := func(r engine.Rate) Rate { return Rate{r.Count, r.Per.Seconds(), r.Burst} }
	return Limits{Paused: l.Paused, Active: l.Active, Rate: rate(l.Rate), KeyActive: l.KeyActive, KeyRate: rate(l.KeyRate)}
}

// Bounds of a rate's time: below, it would be none at all; above, more than a Duration holds.
const (
	minPerSeconds = 0.001
	maxPerSeconds = 365 * 24 * 3600
)

func (l Limits) check() error {
	for name, r := range map[string]Rate{"rate": l.Rate, "keyRate": l.KeyRate} {
		if r.PerSeconds != 0 && (r.PerSeconds < minPerSeconds || r.PerSeconds > maxPerSeconds) {
			return wrong(name+".perSeconds", "perSeconds is %g; %g to %d are allowed, and 0 for 1", r.PerSeconds, minPerSeconds, maxPerSeconds)
		}
	}
	return nil
}

func (l Limits) engine() engine.QueueLimits {
	rate := func(r Rate) engine.Rate {
		return engine.Rate{Count: r.Count, Per: time.Duration(r.PerSeconds * float64(time.Second)), Burst: r.Burst}
	}
	return engine.QueueLimits{Paused: l.Paused, Active: l.Active, Rate: rate(l.Rate), KeyActive: l.KeyActive, KeyRate: rate(l.KeyRate)}
}
