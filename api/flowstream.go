package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/stream"
)

// RunStepEvent is what happened to the job of a step.
type RunStepEvent struct {
	Step  string `json:"step"`
	Round int    `json:"round,omitempty"`
	Undo  bool   `json:"undo,omitempty" doc:"It is the step's compensation."`
	stream.JobEvent
}

// streamRun is outside of a.mux: it has no end by time.
func (a *API) streamRun(w http.ResponseWriter, r *http.Request) {
	if a.cfg.Streams == nil || a.cfg.Flows == nil {
		problemOf(forebay.Errorf(forebay.CodeUnsupported, "", "this server streams no runs")).write(w)
		return
	}
	id := r.PathValue("id")
	a.cfg.Streams.ServeTree(w, r, stream.Tree{
		ID: id, Name: "run",
		Look: func(ctx context.Context) (any, bool, error) {
			v, err := a.getRun(ctx, id)
			return v, v.State.Final() && (v.Job == nil || v.Job.State.Final()), err
		},
		Tell: func(epoch string, e *forebay.HistoryEvent) (string, any) {
			run, step, round, item, undo, ok := flow.ParseJobID(e.Job)
			if !ok || run != id || item >= 0 { // items are too many to be told one by one
				return "", nil
			}
			return "step", RunStepEvent{step, round, undo, stream.EventOf(epoch, e)}
		},
	})
}

func (a *API) runStreamDocs(h huma.API) {
	op := operation(http.MethodGet, runsPath+"/{id}/stream", "stream-run", "Follow a run by server-sent events until its end")
	op.Description = "Events: snapshot (the run, as get-run shows it), step (what happened to the job of a step: started, progress, log, retry, completed …), run (the run again, where it has changed), reset, done, ping. Ids are epoch-seq; a client that shows the last one it saw gets what came after it and a snapshot, or a reset. One that has seen the end gets 204. Instead of a key, a ticket of /api/stream-tickets will do."
	op.Parameters = []*huma.Param{
		pathParam("id"), queryParam("last_event_id", "As the header Last-Event-ID, for clients that cannot set it."), queryParam("ticket", "Instead of a key."),
		{Name: "Last-Event-ID", In: "header", Schema: &huma.Schema{Type: huma.TypeString}},
	}
	op.Responses["204"] = &huma.Response{Description: "The run has ended, and all of it was seen"}
	document[string](h, op, http.StatusOK, "text/event-stream")
}
