package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
)

// streamJob is outside of a.mux: it has no end by time.
func (a *API) streamJob(w http.ResponseWriter, r *http.Request) {
	if a.cfg.Streams == nil {
		problemOf(forebay.Errorf(forebay.CodeUnsupported, "", "this server streams no jobs")).write(w)
		return
	}
	a.cfg.Streams.ServeJob(w, r, r.PathValue("id"), nil)
}

func (a *API) streamDocs(h huma.API) {
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
