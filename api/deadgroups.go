package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// DeadGroup are the dead letters of one cause.
type DeadGroup struct {
	Fingerprint string    `json:"fingerprint" doc:"To list, replay or discard them."`
	Queue       string    `json:"queue"`
	Kind        string    `json:"kind"`
	Code        string    `json:"code"`
	Text        string    `json:"text" doc:"Of the cause, with # for numbers and ids, and … for quoted values."`
	Count       int64     `json:"count"`
	FirstAt     time.Time `json:"firstAt" doc:"When one died first, since the group has been there."`
	LastAt      time.Time `json:"lastAt"`
	Sample      int64     `json:"sample" doc:"The seq of the newest."`

	Arrivals *Arrivals `json:"arrivals,omitempty" doc:"With trend: when they came."`
}

// DeadGroupList is one page of groups.
type DeadGroupList struct {
	Items     []DeadGroup     `json:"items" nullable:"false"`
	Next      string          `json:"next,omitempty" doc:"after= of the next page; absent: this is the last."`
	Partial   bool            `json:"partial,omitempty" doc:"Only the newest dead letters were looked at: the store keeps no list of causes."`
	Elsewhere []DeadElsewhere `json:"elsewhere,omitempty" doc:"Dead letters that are not in this list, since another store keeps them. On the first page without a filter other than the queue."`
}

// DeadElsewhere are the dead letters of a queue whose store keeps them by itself.
type DeadElsewhere struct {
	Queue  string              `json:"queue"`
	Where  string              `json:"where" doc:"In words."`
	Count  int64               `json:"count" doc:"About; with those that are kept here."`
	Latest *engine.RedriveTask `json:"latest,omitempty" doc:"The last task that moved them back."`
	Error  string              `json:"error,omitempty" doc:"Why it cannot be told just now."`
}

// Redrive says how fast dead letters elsewhere are given back to their queue.
type Redrive struct {
	Rate int `json:"rate,omitempty" minimum:"0" maximum:"500" doc:"Messages a second at most; 0: as fast as the store likes."`
}

// Redriven is a task that was begun, or ended.
type Redriven struct {
	Task  string `json:"task,omitempty"`
	Moved int64  `json:"moved,omitempty" doc:"Ended: what it had moved by then."`
}

type deadGroupQuery struct {
	Queue string `query:"queue"`
	Kind  string `query:"kind"`
	Code  string `query:"code"`
	Group string `query:"group" pattern:"^[0-9a-f]{16}$" doc:"A fingerprint."`
	Order string `query:"order" enum:"newest,largest" default:"newest"`
	After string `query:"after" maxLength:"64"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
	Trend string `query:"trend" enum:"1h,24h,7d" doc:"Tell also when they came, over this time. Not on a store that keeps no list of causes."`
}

const redrivePath = "/api/dead/elsewhere/{queue}/redrive"

func (a *API) deadGroupRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/dead/groups", "list-dead-groups", "List dead letters by cause"),
		func(ctx context.Context, in *deadGroupQuery) (*answer[DeadGroupList], error) {
			return reply(a.deadGroups(ctx, in))
		})
	huma.Register(h, operation(http.MethodPost, redrivePath, "redrive-dead", "Give dead letters that another store keeps back to their queue"),
		func(ctx context.Context, in *struct {
			Queue string `path:"queue"`
			Body  Redrive
		}) (*answer[Redriven], error) {
			return reply(a.redrive(ctx, in.Queue, in.Body.Rate))
		})
	huma.Register(h, operation(http.MethodDelete, redrivePath+"/{task}", "cancel-redrive", "End such a task"),
		func(ctx context.Context, in *struct {
			Queue string `path:"queue"`
			Task  string `path:"task"`
		}) (*answer[Redriven], error) {
			return reply(a.cancelRedrive(ctx, in.Queue, in.Task))
		})
}

func fingerprint(n uint64) string { return fmt.Sprintf("%016x", n) }

func parseFingerprint(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil || fingerprint(n) != s || n == 0 {
		return 0, wrong("group", "%q is no fingerprint; 16 of 0-9 a-f are, as /api/dead/groups shows them", s)
	}
	return n, nil
}

func (a *API) deadGroups(ctx context.Context, in *deadGroupQuery) (DeadGroupList, error) {
	group, err := parseFingerprint(in.Group)
	if err != nil {
		return DeadGroupList{}, err
	}
	page, partial, err := a.groupsPage(ctx, engine.DeadGroupQuery{
		Queue: in.Queue, Kind: in.Kind, Code: in.Code, Fingerprint: group, Order: engine.DeadOrder(in.Order), After: in.After, Limit: in.Limit,
	})
	if err != nil {
		return DeadGroupList{}, err
	}
	list := DeadGroupList{Items: make([]DeadGroup, len(page.Groups)), Next: page.Next, Partial: partial}
	for i, g := range page.Groups {
		list.Items[i] = DeadGroup{
			Fingerprint: fingerprint(g.Fingerprint), Queue: g.Queue, Kind: g.Kind, Code: g.Code, Text: g.Text,
			Count: g.Count, FirstAt: g.First, LastAt: g.Last, Sample: g.Sample,
		}
	}
	if in.Trend != "" && !partial {
		all, err := a.arrivalsOf(ctx, page.Groups, in.Trend)
		if err != nil {
			return DeadGroupList{}, err
		}
		for i := range all {
			list.Items[i].Arrivals = all[i]
		}
	}
	if in.After == "" && in.Kind == "" && in.Code == "" && in.Group == "" {
		list.Elsewhere = a.elsewhere(ctx, in.Queue)
	}
	return list, nil
}

// elsewhere tells of dead letters that another store keeps. That it is away is told, and
// keeps nobody from seeing the others.
func (a *API) elsewhere(ctx context.Context, only string) (all []DeadElsewhere) {
	for _, queue := range slices.Sorted(maps.Keys(a.cfg.Redrivers)) {
		if only != "" && only != queue || !holds(ctx, queue) {
			continue
		}
		tasks, err := a.cfg.Redrivers[queue].Redrives(ctx, queue)
		if forebay.CodeOf(err) == forebay.CodeUnsupported {
			continue // it keeps none: they are here
		}
		v := DeadElsewhere{Queue: queue, Where: "in the dead-letter queue that its redrive policy names"}
		if err == nil && len(tasks) > 0 {
			v.Latest = &tasks[0]
		}
		if err == nil {
			var stats []forebay.QueueStats
			if stats, err = a.cfg.Broker.Stats(ctx, queue); err == nil {
				v.Count = stats[0].Dead
			}
		}
		if err != nil {
			v.Error = forebay.TextOf(err)
		}
		all = append(all, v)
	}
	return all
}

func (a *API) redriver(queue string) (engine.Redriver, error) {
	if r := a.cfg.Redrivers[queue]; r != nil {
		return r, nil
	}
	return nil, forebay.Errorf(forebay.CodeUnsupported, "", "the dead letters of queue %q are not kept elsewhere; replay them here", queue)
}

func (a *API) redrive(ctx context.Context, queue string, rate int) (Redriven, error) {
	r, err := a.redriver(queue)
	if err != nil {
		return Redriven{}, err
	}
	task, err := r.Redrive(ctx, queue, rate)
	if err == nil {
		a.cfg.Logger.Info("api: redrive begun", "queue", queue, "rate", rate, "by", caller(ctx))
	}
	return Redriven{Task: task}, err
}

func (a *API) cancelRedrive(ctx context.Context, queue, task string) (Redriven, error) {
	r, err := a.redriver(queue)
	if err != nil {
		return Redriven{}, err
	}
	moved, err := r.CancelRedrive(ctx, queue, task)
	if err == nil {
		a.cfg.Logger.Info("api: redrive cancelled", "queue", queue, "moved", moved, "by", caller(ctx))
	}
	return Redriven{Task: task, Moved: moved}, err
}
