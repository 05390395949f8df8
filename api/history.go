package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/history"
	"github.com/forebayhq/forebay/ingest"
	"github.com/forebayhq/forebay/stream"
)

// What GET /api/history can tell of.
const (
	OfJobs     = "jobs"     // what happened to jobs
	OfMessages = "messages" // what was sent to a queue, such as events
)

const (
	historyPath  = "/api/history"
	historyLimit = 100
	ndjson       = "application/x-ndjson"
)

// HistoryItem is one thing that happened: to a job, or that a message was sent.
type HistoryItem struct {
	Seq      int64             `json:"seq" doc:"Its place; it grows, and none is used twice."`
	At       time.Time         `json:"at"`
	Type     string            `json:"type" doc:"What happened to the job, as in its own history; of messages: sent."`
	ID       string            `json:"id" doc:"Of the job or message."`
	Queue    string            `json:"queue"`
	Kind     string            `json:"kind" doc:"Name of the job, or type of the event."`
	Key      string            `json:"key,omitempty" doc:"Of messages: their group."`
	Attempt  int               `json:"attempt,omitempty"`
	State    forebay.State     `json:"state,omitempty" doc:"Of jobs, after it; absent: unchanged."`
	RunAt    time.Time         `json:"runAt,omitzero" doc:"Delayed until."`
	Progress *stream.Progress  `json:"progress,omitempty"`
	Text     string            `json:"text,omitempty" doc:"The line of a log, or a reason."`
	Cause    *forebay.Cause    `json:"cause,omitempty"`
	Result   json.RawMessage   `json:"result,omitempty" doc:"Completed, and at most 16 KiB."`
	Headers  map[string]string `json:"headers,omitempty" doc:"Of messages."`
	Payload  *Content          `json:"payload,omitempty" doc:"Of messages."`
}

// HistoryList is a part of a history, oldest first.
type HistoryList struct {
	Items  []HistoryItem `json:"items" nullable:"false"`
	Epoch  string        `json:"epoch" doc:"Of the store: places of another one mean nothing."`
	Oldest int64         `json:"oldest" doc:"What lies up to here has left by retention."`
	Next   int64         `json:"next" doc:"after= of the next page."`
	More   bool          `json:"more" doc:"There is more at once; a page may be short all the same."`
}

// HistoryQuery says which part is meant. Times are RFC 3339, or how long ago: -1h, 7d.
type HistoryQuery struct {
	Of       string // OfJobs or OfMessages; empty: OfJobs
	Queue    string // empty: all; of messages: events
	Types    []string
	Kinds    []string
	Job      string // id of the job or message
	Key      string // of messages: user of the event, group or limit key
	From, To string
	After    int64
	Limit    int // 1 to 1000; 0: 100
}

func (q *HistoryQuery) values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{
		"of": q.Of, "queue": q.Queue, "type": strings.Join(q.Types, ","), "kind": strings.Join(q.Kinds, ","), "job": q.Job, "key": q.Key,
		"from": q.From, "to": q.To, "after": number(q.After), "limit": number(int64(q.Limit)),
	} {
		if text != "" {
			v.Set(name, text)
		}
	}
	return v
}

// historyQuestion is a HistoryQuery that was understood.
type historyQuestion struct {
	HistoryQuery
	from, to time.Time
}

func parseHistory(v url.Values, now time.Time) (q historyQuestion, err error) {
	for name := range v {
		if !slices.Contains([]string{"of", "queue", "type", "kind", "job", "key", "from", "to", "after", "limit"}, name) {
			return q, wrong(name, "there is no such parameter")
		}
	}
	list := func(name string) []string {
		return strings.FieldsFunc(v.Get(name), func(r rune) bool { return r == ',' })
	}
	q.Of, q.Queue, q.Types, q.Kinds, q.Job, q.Key = v.Get("of"), v.Get("queue"), list("type"), list("kind"), v.Get("job"), v.Get("key")
	q.Limit = historyLimit
	for name, to := range map[string]*time.Time{"from": &q.from, "to": &q.to} {
		if text := v.Get(name); text != "" {
			if *to, err = history.Moment(text, now); err != nil {
				return q, wrong(name, "%v", err)
			}
		}
	}
	if !q.from.IsZero() && !q.to.IsZero() && !q.from.Before(q.to) {
		return q, wrong("to", "it ends at %s, which is not after from, %s", q.to.Format(time.RFC3339), q.from.Format(time.RFC3339))
	}
	if text := v.Get("after"); text != "" {
		if q.After, err = strconv.ParseInt(text, 10, 64); err != nil || q.After < 0 {
			return q, wrong("after", "%q is no place; it is next of the page before", text)
		}
	}
	if text := v.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > engine.MaxHistory {
			return q, wrong("limit", "%q is no limit; 1 to %d are allowed", text, engine.MaxHistory)
		}
	}
	return q, q.check()
}

func (q *historyQuestion) check() error {
	switch q.Of {
	case "", OfJobs:
		q.Of = OfJobs
		if q.Key != "" {
			return wrong("key", "jobs are found by job, queue, kind and type; a key is for of=messages")
		}
		for _, name := range q.Types {
			if !slices.Contains(historyTypes, forebay.HistoryType(name)) {
				return wrong("type", "%q is no type of event; allowed are %v", name, historyTypes)
			}
		}
	case OfMessages:
		if q.Queue == "" {
			q.Queue = event.Queue
		}
		q.Kinds = append(q.Kinds, q.Types...) // of an event they are one
	default:
		return wrong("of", "%q is not told; allowed are %s and %s", q.Of, OfJobs, OfMessages)
	}
	if q.Queue != "" {
		return engine.CheckQueue(q.Queue)
	}
	return nil
}

func (a *API) historyRoutes(h huma.API) {
	op := operation(http.MethodGet, historyPath, "list-history", "Read what happened to jobs, or what was sent to a queue")
	op.Description = "By time, type, kind, key and job, oldest first. With Accept: application/x-ndjson all of it comes in one answer, an item a line; it ends with the newest."
	op.Parameters = []*huma.Param{
		queryParam("of", "jobs (what happened to them; the default) or messages (what was sent, also what was settled long ago)."),
		queryParam("queue", "Only of this queue. Of messages: which one; the default is events."),
		queryParam("type", "Only these, with commas between: completed,dead of jobs; types of events."), queryParam("kind", "Only jobs or messages of these kinds."),
		queryParam("job", "Only of the job or message with this id."), queryParam("key", "Of messages: only of this user of an event, group or limit key."),
		queryParam("from", "A time as RFC 3339, or how long ago: -1h, 7d."), queryParam("to", "Likewise; before it."),
		queryParam("after", "Next of the page before."), queryParam("limit", "1 to 1000; the default is 100."),
	}
	document[HistoryList](h, op, http.StatusOK, "application/json")
	op.Responses["200"].Content[ndjson] = &huma.MediaType{Schema: h.OpenAPI().Components.Schemas.Schema(typeOf[HistoryItem](), true, "")}
	a.mux.HandleFunc("GET "+historyPath, a.serveHistory)
	a.replayRoutes(h)
}

func (a *API) serveHistory(w http.ResponseWriter, r *http.Request) {
	q, err := parseHistory(r.URL.Query(), a.cfg.Now())
	var list HistoryList
	if err == nil {
		list, err = a.historyPage(r.Context(), &q)
	}
	if err != nil {
		problemOf(err).write(w)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

// lastingHistory is outside of a.mux for those who want all of it: that has no end by time.
func lastingHistory(short, long http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), ndjson) {
			long.ServeHTTP(w, r)
			return
		}
		short.ServeHTTP(w, r)
	})
}

// streamHistory answers line by line. An error after the first page is a last line.
func (a *API) streamHistory(w http.ResponseWriter, r *http.Request) {
	q, err := parseHistory(r.URL.Query(), a.cfg.Now())
	if q.to.IsZero() {
		q.to = a.cfg.Now() // so that it ends
	}
	q.Limit = engine.MaxHistory
	var list HistoryList
	if err == nil {
		list, err = a.historyPage(r.Context(), &q)
	}
	if err != nil {
		problemOf(err).write(w)
		return
	}
	w.Header().Set("Content-Type", ndjson)
	lines, control := json.NewEncoder(w), http.NewResponseController(w)
	lines.SetEscapeHTML(false)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(ingest.WriteTimeout)) // who reads nothing for so long is gone
		for i := range list.Items {
			if lines.Encode(&list.Items[i]) != nil {
				return
			}
		}
		if !list.More || control.Flush() != nil {
			return
		}
		q.After = list.Next
		if list, err = a.historyPage(r.Context(), &q); err != nil {
			_ = lines.Encode(struct {
				Error *Problem `json:"error"`
			}{problemOf(err)})
			return
		}
	}
}

func (a *API) historyPage(ctx context.Context, q *historyQuestion) (HistoryList, error) {
	if q.Queue != "" {
		if err := mustHold(ctx, q.Queue); err != nil {
			return HistoryList{}, err
		}
	}
	if q.Of == OfMessages {
		return a.messagePage(ctx, q)
	}
	types := make([]forebay.HistoryType, len(q.Types))
	for i, name := range q.Types {
		types[i] = forebay.HistoryType(name)
	}
	page, err := a.cfg.Broker.History(ctx, engine.HistoryQuery{
		After: q.After, Job: q.Job, Queue: q.Queue, Types: types, Since: q.from, Until: q.to, Limit: q.Limit,
	})
	if err != nil {
		return HistoryList{}, err
	}
	list := HistoryList{Items: []HistoryItem{}, Epoch: page.Epoch, Oldest: page.Oldest, Next: page.Next, More: page.More}
	for i := range page.Events {
		e := &page.Events[i]
		if len(q.Kinds) > 0 && !slices.Contains(q.Kinds, e.Kind) || !holds(ctx, e.Queue) {
			continue
		}
		item := HistoryItem{
			Seq: e.Seq, At: e.At, Type: string(e.Type), ID: e.Job, Queue: e.Queue, Kind: e.Kind, Attempt: e.Attempt, State: e.State,
			RunAt: e.Due, Text: e.Text, Cause: e.Cause, Result: e.Result,
		}
		if e.Progress != nil {
			p := stream.ProgressOf(*e.Progress)
			item.Progress = &p
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

func (a *API) messagePage(ctx context.Context, q *historyQuestion) (HistoryList, error) {
	if err := a.mayAskKey(ctx, q.Key); err != nil {
		return HistoryList{}, err
	}
	s := history.Selection{Queue: q.Queue, Types: q.Kinds, Key: q.Key, ID: q.Job, From: q.from, To: q.to}
	page, err := history.Read(ctx, a.cfg.Broker, s, q.After, q.Limit)
	if err != nil {
		return HistoryList{}, err
	}
	list := HistoryList{Items: make([]HistoryItem, len(page.Entries)), Epoch: page.Epoch, Oldest: page.Oldest, Next: page.Next, More: page.More}
	for i := range page.Entries {
		m := &page.Entries[i].Message
		list.Items[i] = HistoryItem{
			Seq: page.Entries[i].Seq, At: page.Entries[i].SentAt, Type: "sent", ID: m.ID, Queue: m.Queue, Kind: m.Kind, Key: m.Group,
			Headers: m.Headers, Payload: contentOf(m.Payload),
		}
	}
	return list, nil
}
