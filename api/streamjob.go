package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
)

// streamJob is outside of a.mux: it has no end by time.
func (a *API) streamJob(w http.ResponseWriter, r *http.Request) {
	if a.cfg.Streams == nil {
		problemOf(forebay.Errorf(forebay.CodeUnsupported, "", "this server streams no jobs")).write(w)
		return
	}
	a.cfg.Streams.ServeJob(w, r, r.PathValue("id"), nil)
}

// streamEvents streams what happens to all jobs, or those of one queue.
func (a *API) streamEvents(w http.ResponseWriter, r *http.Request) {
	if a.cfg.Streams == nil {
		problemOf(forebay.Errorf(forebay.CodeUnsupported, "", "this server streams no jobs")).write(w)
		return
	}
	q := r.URL.Query()
	f := broker.WatchFilter{Queue: q.Get("queue")}
	if f.Queue != "" {
		if err := engine.CheckQueue(f.Queue); err != nil {
			problemOf(err).write(w)
			return
		}
		if err := mustHold(r.Context(), f.Queue); err != nil {
			problemOf(err).write(w)
			return
		}
	}
	if !holdsAll(r.Context()) {
		f.Held = func(queue string) bool { return holds(r.Context(), queue) }
	}
	for _, name := range strings.FieldsFunc(q.Get("types"), func(r rune) bool { return r == ',' }) {
		if !slices.Contains(historyTypes, forebay.HistoryType(name)) {
			problemOf(wrong("types", "%q is no type of event; allowed are %v", name, historyTypes)).write(w)
			return
		}
		f.Types = append(f.Types, forebay.HistoryType(name))
	}
	a.cfg.Streams.ServeEvents(w, r, f)
}

var historyTypes = []forebay.HistoryType{
	forebay.HistoryAdded, forebay.HistoryReplaced, forebay.HistoryChanged, forebay.HistoryStarted, forebay.HistoryProgress, forebay.HistoryLog,
	forebay.HistoryRetry, forebay.HistoryReleased, forebay.HistoryLeaseLost, forebay.HistoryCancelRequested, forebay.HistoryCompleted,
	forebay.HistoryDead, forebay.HistoryCancelled, forebay.HistoryExpired, forebay.HistoryReplayed, forebay.HistoryDiscarded,
}

func (a *API) streamDocs(h huma.API) {
	all := operation(http.MethodGet, "/api/stream", "stream-events", "Follow what happens to all jobs, or those of a queue, by server-sent events")
	all.Description = "Begins with reset: read anew what you show; what happens from there on follows as state, progress and log events, each with an id to resume from, as for one job."
	all.Parameters = []*huma.Param{
		queryParam("queue", "Only of this queue."), queryParam("types", "Only these types of events, with commas between: started,completed."),
		queryParam("last_event_id", "As the header Last-Event-ID, for clients that cannot set it."), queryParam("ticket", "Instead of a key."),
		{Name: "Last-Event-ID", In: "header", Schema: &huma.Schema{Type: huma.TypeString}},
	}
	document[string](h, all, http.StatusOK, "text/event-stream")
	for path, id := range map[string]string{"/api/jobs/{id}/stream": "stream-job", "/api/jobs/{id}/events": "stream-job-events"} {
		op := operation(http.MethodGet, path, id, "Follow a job by server-sent events until its end")
		op.Description = "Events: snapshot, progress, state, log, reset, done, ping. Ids are epoch-seq; a client that shows the last one it saw gets what came after it, or a reset. One that has seen the end gets 204. Instead of a key, a ticket of /api/stream-tickets will do."
		op.Parameters = []*huma.Param{
			pathParam("id"), queryParam("last_event_id", "As the header Last-Event-ID, for clients that cannot set it."), queryParam("ticket", "Instead of a key."),
			{Name: "Last-Event-ID", In: "header", Schema: &huma.Schema{Type: huma.TypeString}},
		}
		op.Responses["204"] = &huma.Response{Description: "The job has finished, and all of it was seen"}
		document[string](h, op, http.StatusOK, "text/event-stream")
	}
}
