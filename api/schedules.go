package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/schedule"
)

// defaultPreview is how many ticks a preview shows.
const defaultPreview = 10

// ScheduleList is one page of schedules, by name.
type ScheduleList struct {
	Items []Schedule `json:"items" nullable:"false"`
	Next  string     `json:"next,omitempty" doc:"after= of the next page; absent: this is the last."`
}

// PreviewSchedule is a definition whose ticks are asked for.
type PreviewSchedule struct {
	Cron     string    `json:"cron,omitempty" maxLength:"256"`
	Every    Duration  `json:"every,omitzero"`
	Timezone string    `json:"timezone,omitempty"`
	Start    time.Time `json:"start,omitzero"`
	End      time.Time `json:"end,omitzero"`
	N        int       `json:"n,omitempty" minimum:"1" maximum:"1000" doc:"How many; absent: 10."`
}

// TickList is the next ticks of a schedule.
type TickList struct {
	Items []time.Time `json:"items" nullable:"false"`
}

// ScheduleRun is a job that was added by hand.
type ScheduleRun struct {
	JobID string `json:"jobId"`
}

// ScheduleGone is a schedule that was deleted.
type ScheduleGone struct {
	Name string `json:"name"`
}

// OneSchedule is a schedule in a path.
type OneSchedule struct {
	Name string `path:"name" doc:"Its name."`
}

func (a *API) scheduleRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/schedules", "list-schedules", "List schedules by name"),
		func(ctx context.Context, in *struct {
			After string `query:"after" doc:"Next of the page before."`
			Limit int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
		}) (*answer[ScheduleList], error) {
			return reply(a.listSchedules(ctx, in.After, in.Limit))
		})
	huma.Register(h, operation(http.MethodGet, "/api/schedules/{name}", "get-schedule", "Show a schedule"),
		func(ctx context.Context, in *OneSchedule) (*answer[Schedule], error) {
			return reply(a.onSchedule(ctx, "", in.Name, (*schedule.Scheduler).Get))
		})
	put := operation(http.MethodPut, "/api/schedules/{name}", "put-schedule", "Add or replace a schedule")
	put.Description = "What a schedule has done is kept when it is replaced. If its times change, the new ones hold from now on."
	put.Parameters = []*huma.Param{pathParam("name")}
	plain[PutSchedule, Schedule](a, h, put, http.StatusOK, a.putSchedule)
	huma.Register(h, operation(http.MethodDelete, "/api/schedules/{name}", "delete-schedule", "Delete a schedule; its jobs stay"),
		func(ctx context.Context, in *OneSchedule) (*answer[ScheduleGone], error) {
			return reply(a.deleteSchedule(ctx, in.Name))
		})
	huma.Register(h, operation(http.MethodPost, "/api/schedules/{name}/pause", "pause-schedule", "Let no tick happen until it is resumed"),
		func(ctx context.Context, in *OneSchedule) (*answer[Schedule], error) {
			return reply(a.onSchedule(ctx, "pause", in.Name, (*schedule.Scheduler).Pause))
		})
	huma.Register(h, operation(http.MethodPost, "/api/schedules/{name}/resume", "resume-schedule", "Let ticks happen again, from now on"),
		func(ctx context.Context, in *OneSchedule) (*answer[Schedule], error) {
			return reply(a.onSchedule(ctx, "resume", in.Name, (*schedule.Scheduler).Resume))
		})
	huma.Register(h, operation(http.MethodPost, "/api/schedules/{name}/run", "run-schedule", "Add a job of a schedule at once"),
		func(ctx context.Context, in *OneSchedule) (*answer[ScheduleRun], error) {
			return reply(a.runSchedule(ctx, in.Name))
		})
	huma.Register(h, operation(http.MethodGet, "/api/schedules/{name}/preview", "preview-schedule", "Tell the next ticks of a schedule, as if it were not paused"),
		func(ctx context.Context, in *struct {
			OneSchedule
			N int `query:"n" minimum:"1" maximum:"1000" default:"10"`
		}) (*answer[TickList], error) {
			return reply(a.previewSchedule(ctx, in.Name, in.N))
		})
	preview := operation(http.MethodPost, "/api/schedules/preview", "preview-definition", "Tell the next ticks of a schedule that need not exist")
	plain[PreviewSchedule, TickList](a, h, preview, http.StatusOK, a.previewDefinition)
}

func noSchedules() error {
	return forebay.Errorf(forebay.CodeUnsupported, "", "this server keeps no schedules")
}

// onSchedule does something to one schedule and shows it; what is said in the log,
// empty: nothing.
func (a *API) onSchedule(ctx context.Context, what, name string, do func(*schedule.Scheduler, context.Context, string) (schedule.Schedule, error)) (Schedule, error) {
	if a.cfg.Schedules == nil {
		return Schedule{}, noSchedules()
	}
	s, err := do(a.cfg.Schedules, ctx, name)
	if err != nil {
		return Schedule{}, err
	}
	if what != "" {
		a.cfg.Logger.Info("api: schedule: "+what, "schedule", name, "by", caller(ctx))
	}
	return a.seen(ctx, s)
}

// seen shows a schedule with the state of its last job.
func (a *API) seen(ctx context.Context, s schedule.Schedule) (Schedule, error) {
	v := showSchedule(s)
	if v.LastJob == nil {
		return v, nil
	}
	j, err := a.cfg.Broker.Job(ctx, v.LastJob.JobID)
	switch forebay.CodeOf(err) {
	case "":
		v.LastJob.State = j.State
	case forebay.CodeNotFound, forebay.CodeUnsupported:
	default:
		return v, err
	}
	return v, nil
}

func (a *API) listSchedules(ctx context.Context, after string, limit int) (ScheduleList, error) {
	list := ScheduleList{Items: []Schedule{}}
	if a.cfg.Schedules == nil {
		return list, noSchedules()
	}
	page, err := a.cfg.Schedules.List(ctx, after, limit)
	if err != nil {
		return list, err
	}
	for _, s := range page {
		if !holds(ctx, s.Job.Queue) {
			continue
		}
		v, err := a.seen(ctx, s)
		if err != nil {
			return list, err
		}
		list.Items = append(list.Items, v)
	}
	if len(page) == limit { // the one after may be empty; large values make a page short
		list.Next = page[len(page)-1].Name
	}
	return list, nil
}

func (a *API) putSchedule(w http.ResponseWriter, r *http.Request) {
	v, err := a.put(w, r)
	if err != nil {
		problemOf(err).write(w)
		return
	}
	writeJSON(w, http.StatusOK, v)
}

func (a *API) put(w http.ResponseWriter, r *http.Request) (Schedule, error) {
	if a.cfg.Schedules == nil {
		return Schedule{}, noSchedules()
	}
	body, err := readBody(w, r, maxJobBody)
	if err != nil {
		return Schedule{}, err
	}
	var in PutSchedule
	if err := decode(body, &in); err != nil {
		return Schedule{}, err
	}
	ctx, name := r.Context(), r.PathValue("name")
	if err := schedule.CheckName(name); err != nil {
		return Schedule{}, err
	}
	rev, paused := int64(engine.AnyRev), false
	if in.Rev != nil {
		rev = *in.Rev
	}
	if in.Paused == nil && rev != 0 {
		before, err := a.cfg.Schedules.Get(ctx, name)
		if err != nil && forebay.CodeOf(err) != forebay.CodeNotFound {
			return Schedule{}, err
		}
		paused = before.Paused
	}
	d, err := in.definition(name, paused)
	if err != nil {
		return Schedule{}, err
	}
	if rev, err = a.mayPut(ctx, name, d.Job.Queue, rev); err != nil {
		return Schedule{}, err
	}
	s, created, err := a.cfg.Schedules.Put(ctx, d, rev)
	if err != nil {
		return Schedule{}, err
	}
	a.cfg.Logger.Info("api: schedule: put", "schedule", name, "created", created, "by", caller(ctx))
	return a.seen(ctx, s)
}

// mayPut refuses to whoever does not hold for the queue of a schedule, or of the one that it
// replaces; it is then that one which is replaced, and no later one.
func (a *API) mayPut(ctx context.Context, name, queue string, rev int64) (int64, error) {
	if holdsAll(ctx) {
		return rev, nil
	}
	if err := mustHold(ctx, queue); err != nil {
		return rev, err
	}
	before, err := a.cfg.Schedules.Get(ctx, name)
	if err != nil && forebay.CodeOf(err) != forebay.CodeNotFound {
		return rev, err
	}
	if err == nil && !holds(ctx, before.Job.Queue) {
		return rev, notHeld(ctx, "the schedule "+name)
	}
	if rev == engine.AnyRev {
		rev = before.Rev
	}
	return rev, nil
}

func (a *API) deleteSchedule(ctx context.Context, name string) (ScheduleGone, error) {
	if a.cfg.Schedules == nil {
		return ScheduleGone{}, noSchedules()
	}
	if err := a.cfg.Schedules.Delete(ctx, name, engine.AnyRev); err != nil {
		return ScheduleGone{}, err
	}
	a.cfg.Logger.Info("api: schedule: delete", "schedule", name, "by", caller(ctx))
	return ScheduleGone{name}, nil
}

// runSchedule adds a job. With an idempotency key its id is made of that, so that a
// repetition adds it once, whatever happens between.
func (a *API) runSchedule(ctx context.Context, name string) (ScheduleRun, error) {
	if a.cfg.Schedules == nil {
		return ScheduleRun{}, noSchedules()
	}
	var m forebay.Message
	deriveID(ctx, &m, 0)
	job, err := a.cfg.Schedules.RunNow(ctx, name, m.ID)
	if err == nil {
		a.cfg.Logger.Info("api: schedule: run", "schedule", name, "job", job, "by", caller(ctx))
	}
	return ScheduleRun{job}, err
}

func (a *API) previewSchedule(ctx context.Context, name string, n int) (TickList, error) {
	if a.cfg.Schedules == nil {
		return TickList{}, noSchedules()
	}
	ticks, err := a.cfg.Schedules.PreviewOf(ctx, name, n)
	return TickList{ticks}, err
}

func (a *API) previewDefinition(w http.ResponseWriter, r *http.Request) {
	ticks, err := a.preview(w, r)
	if err != nil {
		problemOf(err).write(w)
		return
	}
	writeJSON(w, http.StatusOK, TickList{ticks})
}

func (a *API) preview(w http.ResponseWriter, r *http.Request) ([]time.Time, error) {
	if a.cfg.Schedules == nil {
		return nil, noSchedules()
	}
	body, err := readBody(w, r, maxJobBody)
	if err != nil {
		return nil, err
	}
	var in PreviewSchedule
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if in.N == 0 {
		in.N = defaultPreview
	}
	d := schedule.Definition{Cron: in.Cron, Every: time.Duration(in.Every), Timezone: in.Timezone, Start: in.Start, End: in.End}
	return a.cfg.Schedules.Preview(d, in.N)
}
