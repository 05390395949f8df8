package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of what adds jobs.
const (
	maxBulk      = 1000
	maxJobBody   = forebay.MaxPayloadBytes + 64<<10
	maxBulkBody  = 8 << 20
	addPath      = "/api/jobs"
	jobPath      = addPath + "/"
	traceparent  = "Traceparent"
	streamSuffix = "/stream"
	smallBody    = 64 << 10 // is read into as much memory as it says that it needs
)

// AddedJob is what became of one new job.
type AddedJob struct {
	JobID            string        `json:"jobId"`
	State            forebay.State `json:"state" enum:"waiting,delayed,active,completed,dead,cancelled,expired"`
	Duplicate        bool          `json:"duplicate,omitempty" doc:"There is such a job already; it is the one that is told."`
	Conflict         bool          `json:"conflict,omitempty" doc:"A duplicate with other data."`
	Replaced         bool          `json:"replaced,omitempty" doc:"The job that waits has this one's data now."`
	EstimatedSeconds *Estimate     `json:"estimatedSeconds,omitempty" doc:"Until it is done, where there is something to tell by."`
	ProgressURL      string        `json:"progressUrl"`
	StreamURL        string        `json:"streamUrl"`
}

// Estimate is a range of seconds.
type Estimate struct {
	Low    float64 `json:"low"`
	Likely float64 `json:"likely"`
	High   float64 `json:"high"`
}

// BulkAdd is many new jobs.
type BulkAdd struct {
	Items []NewJob `json:"items" minItems:"1" maxItems:"1000"`
}

// BulkAdded has an entry for each item, in their order.
type BulkAdded struct {
	Items  []BulkResult `json:"items" nullable:"false"`
	Added  int          `json:"added" doc:"Duplicates count, since they are there."`
	Failed int          `json:"failed"`
}

// BulkResult is either a job or what is wrong with it.
type BulkResult struct {
	*AddedJob
	Error *Refusal `json:"error,omitempty"`
}

// TransformSchema documents that a result with an error has nothing of a job.
func (BulkResult) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Required = nil
	return s
}

// Refusal is what is wrong with one item.
type Refusal struct {
	Code    forebay.Code `json:"code"`
	Message string       `json:"message"`
	Field   string       `json:"field,omitempty"`
}

func (a *API) addRoutes(h huma.API) {
	add := operation(http.MethodPost, addPath, "add-job", "Add a job")
	add.Description = "Durations are text: 250ms, 30s, 1h30m, 7d. The job is stored durably when the answer comes. An Idempotency-Key makes a repetition harmless."
	plain[NewJob, AddedJob](a, h, add, http.StatusAccepted, a.adder.add)
	bulk := operation(http.MethodPost, "/api/jobs/bulk", "add-jobs", "Add up to 1,000 jobs, each with its own result")
	plain[BulkAdd, BulkAdded](a, h, bulk, http.StatusOK, a.addJobs)
}

// plain registers a route that reads its body by itself, and documents it.
func plain[In, Out any](a *API, h huma.API, op huma.Operation, status int, serve http.HandlerFunc) {
	schemas := h.OpenAPI().Components.Schemas
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: schemas.Schema(typeOf[In](), true, "")},
	}}
	document[Out](h, op, status, "application/json")
	a.mux.HandleFunc(op.Method+" "+op.Path, serve)
}

func (a *API) addJobs(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r, maxBulkBody)
	var in struct {
		Items []json.RawMessage `json:"items"`
	}
	if err == nil {
		err = decode(body, &in)
	}
	if err == nil && (len(in.Items) == 0 || len(in.Items) > maxBulk) {
		err = wrong("items", "there are %d items; 1 to %d are allowed", len(in.Items), maxBulk)
	}
	var out BulkAdded
	if err == nil {
		out, err = a.addAll(r, in.Items)
	}
	if err != nil {
		problemOf(err).write(w)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// traceOf is the trace context of a request. One that is malformed, or one of several, is
// none, as W3C says: it costs no job.
func traceOf(h http.Header) string {
	if v := h.Values(traceparent); len(v) == 1 && engine.SoundTrace(v[0]) {
		return v[0]
	}
	return ""
}

// addAll adds what can be added and says of the rest what is wrong.
func (a *API) addAll(r *http.Request, items []json.RawMessage) (BulkAdded, error) {
	now := a.cfg.Now()
	out := BulkAdded{Items: make([]BulkResult, len(items))}
	msgs, at := make([]forebay.Message, 0, len(items)), make([]int, 0, len(items))
	var derived bool
	for i, raw := range items {
		var n NewJob
		err := decode(raw, &n)
		var m forebay.Message
		if err == nil {
			n.Trace = cmp.Or(n.Trace, traceOf(r.Header))
			m, err = n.message(now)
		}
		if err == nil {
			err = mustAdd(r.Context(), &m)
		}
		if err == nil {
			err = a.fits(r.Context(), &m)
		}
		if err != nil {
			out.fail(i, err)
			continue
		}
		derived = deriveID(r.Context(), &m, i) || derived
		msgs, at = append(msgs, m), append(at, i)
	}
	results, err := a.cfg.Broker.Send(r.Context(), msgs)
	if err != nil {
		return out, err
	}
	for k, result := range results {
		err := refused(result.Err)
		var added AddedJob
		if err == nil {
			added, err = a.added(r.Context(), &msgs[k], result, derived, now)
		}
		if err != nil {
			out.fail(at[k], err)
			continue
		}
		out.Items[at[k]].AddedJob = &added
		out.Added++
	}
	return out, nil
}

func (b *BulkAdded) fail(i int, err error) {
	b.Items[i].Error = refusalOf(err)
	b.Failed++
}

func refusalOf(err error) *Refusal {
	p := problemOf(err)
	return &Refusal{Code: p.Code, Message: p.Detail, Field: p.Field}
}

// added tells what a Send did. derived: the id was made of the idempotency key, so a
// job that has it already is this very one, of a first try that got no answer.
func (a *API) added(ctx context.Context, m *forebay.Message, r forebay.SendResult, derived bool, now time.Time) (AddedJob, error) {
	path := jobPath + url.PathEscape(r.ID)
	v := AddedJob{
		JobID: r.ID, State: forebay.StateWaiting, Duplicate: r.Duplicate, Conflict: r.Conflict, Replaced: r.Replaced,
		ProgressURL: path + "/progress", StreamURL: path + streamSuffix,
	}
	wait := m.NotBefore.Sub(now)
	if wait > 0 {
		v.State = forebay.StateDelayed
	}
	if derived && r.Duplicate && r.ID == m.ID {
		v.Duplicate, v.Conflict = false, false
	}
	if r.Duplicate {
		j, err := a.cfg.Broker.Job(ctx, r.ID)
		if err == nil && !holds(ctx, j.Queue) {
			return v, forebay.Errorf(forebay.CodeConflict, "", "the id %q is taken", r.ID)
		} else if err == nil {
			v.State, wait = j.State, j.Due.Sub(now)
		} else if forebay.CodeOf(err) != forebay.CodeNotFound {
			return v, err
		}
	}
	if e := a.cfg.Broker.Estimate(m.Queue, m.Kind); e.Samples > 0 && !v.State.Final() {
		wait = max(0, wait)
		v.EstimatedSeconds = &Estimate{(e.Low + wait).Seconds(), (e.Likely + wait).Seconds(), (e.High + wait).Seconds()}
	}
	return v, nil
}

func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if n := r.ContentLength; 0 <= n && n <= min(most, smallBody) {
		body := make([]byte, n)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, forebay.Errorf(forebay.CodeInvalid, "", "the body ended early: %w", err)
		}
		return body, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil {
		return body, nil
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, forebay.Errorf(forebay.CodeTooLarge, "", "the body is larger than %d bytes, the most that is allowed here", most)
	}
	return nil, forebay.Errorf(forebay.CodeInvalid, "", "the body ended early: %w", err)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encode(w, v)
}
