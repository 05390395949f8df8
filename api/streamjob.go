package api

import (
	"net/http"
	"net/url"
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

// maxTopics is how many streams go over one connection.
const maxTopics = 64

// orTopics streams several streams over one connection where they are asked for.
func (a *API) orTopics(streams *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if !q.Has("topic") {
			streams.ServeHTTP(w, r)
			return
		}
		topics, err := topicsOf(r, q["topic"], streams)
		if err == nil && a.cfg.Streams == nil {
			err = forebay.Errorf(forebay.CodeUnsupported, "", "this server streams no jobs")
		}
		if err != nil {
			problemOf(err).write(w)
			return
		}
		a.cfg.Streams.ServeTopics(w, r, topics, streams)
	})
}

// topicsOf makes the requests for streams that r asks for as topics.
func topicsOf(r *http.Request, paths []string, streams *http.ServeMux) ([]*http.Request, error) {
	if len(paths) > maxTopics {
		return nil, wrong("topic", "there are %d; at most %d streams go over one connection", len(paths), maxTopics)
	}
	topics := make([]*http.Request, len(paths))
	for i, path := range paths {
		to, err := url.ParseRequestURI(path)
		if err != nil || to.Host != "" || to.Query().Has("topic") {
			return nil, wrong("topic", "%q is no path of a stream, such as /api/jobs/ID/stream?last_event_id=…", path)
		}
		topic := r.Clone(r.Context())
		topic.URL, topic.RequestURI = to, path
		topic.Header.Del("Last-Event-ID") // it is in the path, of each its own
		if _, pattern := streams.Handler(topic); pattern == "" {
			return nil, wrong("topic", "%q is no stream; allowed are /api/stream, /api/jobs/ID/stream and /api/runs/ID/stream", path)
		}
		topics[i] = topic
	}
	return topics, nil
}

var historyTypes = []forebay.HistoryType{
	forebay.HistoryAdded, forebay.HistoryReplaced, forebay.HistoryChanged, forebay.HistoryStarted, forebay.HistoryProgress, forebay.HistoryLog,
	forebay.HistoryRetry, forebay.HistoryReleased, forebay.HistoryLeaseLost, forebay.HistoryCancelRequested, forebay.HistoryCompleted,
	forebay.HistoryDead, forebay.HistoryCancelled, forebay.HistoryExpired, forebay.HistoryReplayed, forebay.HistoryDiscarded,
}

func (a *API) streamDocs(h huma.API) {
	all := operation(http.MethodGet, "/api/stream", "stream-events", "Follow what happens to all jobs, or those of a queue, by server-sent events")
	all.Description = "Begins with reset: read anew what you show; what happens from there on follows as state, progress and log events, each with an id to resume from, as for one job. With topic it streams several streams over one connection: each event of theirs is one called topic, whose data say which, and what."
	all.Parameters = []*huma.Param{
		queryParam("queue", "Only of this queue."), queryParam("types", "Only these types of events, with commas between: started,completed."),
		queryParam("last_event_id", "As the header Last-Event-ID, for clients that cannot set it."), queryParam("ticket", "Instead of a key."),
		{Name: "Last-Event-ID", In: "header", Schema: &huma.Schema{Type: huma.TypeString}},
		{Name: "topic", In: "query", Explode: new(true), Schema: &huma.Schema{Type: huma.TypeArray, MaxItems: new(maxTopics), Items: &huma.Schema{Type: huma.TypeString}}, Description: "The path of a stream with its query, such as /api/jobs/ID/stream?last_event_id=…; several times: several. Alone."},
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
