package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
)

// NewJob is a job that is to be added. Only the queue and the name are needed.
type NewJob struct {
	ID    string          `json:"id,omitempty" doc:"Absent: one is made. A second job with the same id is a duplicate."`
	Queue string          `json:"queue"`
	Name  string          `json:"name" doc:"Its kind: which handler it is for."`
	Data  json.RawMessage `json:"data,omitempty" doc:"Any JSON, at most 1 MiB; absent: null."`

	Delay    Duration  `json:"delay,omitzero" doc:"Not before this has passed."`
	RunAt    time.Time `json:"runAt,omitzero" doc:"Not before; instead of delay."`
	Priority *int      `json:"priority,omitempty" minimum:"0" maximum:"9" doc:"0 is the most urgent, 9 the least; absent: 5."`

	Attempts   int      `json:"attempts,omitempty" minimum:"0" doc:"Failed ones before it is dead; absent: as its queue says."`
	Deliveries int      `json:"deliveries,omitempty" minimum:"0" doc:"Hand-outs before it is poison; absent: as its queue says."`
	Backoff    *Backoff `json:"backoff,omitempty" doc:"The wait after a failed attempt; absent fields: as its queue says."`
	Timeout    Duration `json:"timeout,omitzero" doc:"Of one attempt."`
	Deadline   *Moment  `json:"deadline,omitempty" doc:"Of the whole: after it the job is dead."`
	Expires    *Moment  `json:"expires,omitempty" doc:"Not begun by then, it is expired."`

	Dedup     *Dedup            `json:"dedup,omitempty"`
	Group     string            `json:"group,omitempty" doc:"Jobs of one group run in order, one at a time."`
	LimitKey  string            `json:"limitKey,omitempty" doc:"The key of per-key limits."`
	Tags      []string          `json:"tags,omitempty" doc:"To find it by."`
	Tenant    string            `json:"tenant,omitempty" doc:"Tenants of a queue take turns."`
	Owner     string            `json:"owner,omitempty" doc:"Who is told when it is late or fails."`
	Retention *Retention        `json:"retention,omitempty" doc:"How long it is kept once finished; absent fields: as its queue says."`
	Parent    string            `json:"parent,omitempty" doc:"The job that it came from."`
	Trace     string            `json:"trace,omitempty" doc:"W3C traceparent; absent: that of the request."`
	Headers   map[string]string `json:"headers,omitempty"`
}

// Backoff is the wait after a failed attempt.
type Backoff struct {
	Kind   forebay.BackoffKind `json:"kind,omitempty" enum:"fixed,exponential"`
	Base   Duration            `json:"base,omitzero" doc:"The wait after the first failure."`
	Cap    Duration            `json:"cap,omitzero" doc:"The longest wait."`
	Jitter float64             `json:"jitter,omitempty" minimum:"0" maximum:"1" doc:"This share of the wait is random."`
}

// Dedup says when a job is a duplicate of one before it.
type Dedup struct {
	Key    string            `json:"key"`
	Mode   forebay.DedupMode `json:"mode,omitempty" enum:"until_finished,throttle,debounce,keep_last" doc:"Absent: within the window, or while the first is not finished."`
	Window Duration          `json:"window,omitzero"`
}

// Retention says how long a finished job is kept.
type Retention struct {
	Finished *Keep `json:"finished,omitempty" doc:"Completed, cancelled, expired."`
	Dead     *Keep `json:"dead,omitempty"`
}

// Keep bounds what is kept. Both bounds hold.
type Keep struct {
	Age   Duration `json:"age,omitzero"`
	Count int      `json:"count,omitempty" minimum:"0" doc:"Of the queue, the newest ones."`
	None  bool     `json:"none,omitempty" doc:"Do not keep it at all; finished jobs only."`
}

// decode reads a body strictly: no unknown fields, no field twice.
func decode(body []byte, into any) error {
	if err := jsonv2.Unmarshal(body, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		return decodeError(body, err)
	}
	return nil
}

// decodeError says where and what is wrong, without the words of a decoder.
func decodeError(body []byte, err error) error {
	var ours *forebay.Error
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) {
		if len(body) == 0 {
			return forebay.Errorf(forebay.CodeInvalid, "", "the body is empty; it must be JSON")
		}
		return forebay.Errorf(forebay.CodeInvalid, "", "the body is not JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	field := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
	switch {
	case errors.As(err, &ours):
		return wrong(field, "%s", ours.Text)
	case errors.Is(err, jsonv2.ErrUnknownName):
		return wrong(field, "there is no field %q; see /openapi.json", field)
	case semantic.GoType != nil:
		return wrong(field, "%s cannot be %s here; %s", cmp.Or(field, "the body"), kindName(semantic.JSONKind), insteadOf(semantic))
	}
	return wrong(field, "%s is not what is allowed here; see /openapi.json", field)
}

// insteadOf says what may stand where something else does.
func insteadOf(e *jsonv2.SemanticError) string {
	t := e.GoType
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == typeOf[Duration]():
		return `it is a text with a unit, such as "250ms", "90s" or "1h30m"`
	case t == typeOf[Moment]():
		return `it is a text: a time such as "2026-01-31T08:00:00Z", or a duration from now such as "90s"`
	case t == typeOf[time.Time]():
		return `it is a text such as "2026-01-31T08:00:00Z"`
	case t.Kind() == reflect.Int && e.JSONKind == '0':
		return "it is a whole number, in digits only and not that large"
	}
	return "see /openapi.json"
}

// kindName is what a kind of JSON is called.
func kindName(k jsontext.Kind) string {
	switch k {
	case '[':
		return "an array"
	case '{':
		return "an object"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	}
	return "a " + k.String()
}

// message makes a message of a new job. What it does not check, the broker does.
func (n *NewJob) message(now time.Time) (forebay.Message, error) {
	m := forebay.Message{
		ID: n.ID, Queue: n.Queue, Kind: n.Name, Payload: n.Data, Headers: n.Headers,
		NotBefore: n.RunAt, Group: n.Group, LimitKey: n.LimitKey,
		Limits: forebay.Limits{Attempts: n.Attempts, Deliveries: n.Deliveries},
	}
	if len(m.Payload) == 0 {
		m.Payload = []byte("null")
	}
	switch {
	case n.Name == "":
		return m, wrong("name", "the job has no name; it says which handler it is for")
	case n.Delay > 0 && !n.RunAt.IsZero():
		return m, wrong("delay", "either delay or runAt says when it may begin, not both")
	case n.Delay > 0:
		m.NotBefore = now.Add(time.Duration(n.Delay))
	}
	if p := n.Priority; p != nil {
		if *p < 0 || *p > 9 {
			return m, wrong("priority", "the priority is %d; 0 (most urgent) to 9 are allowed", *p)
		}
		m.Priority = forebay.At(*p)
	}
	m.Job = &forebay.JobOptions{
		Timeout: time.Duration(n.Timeout), Deadline: n.Deadline.time(now), Expires: n.Expires.time(now),
		Tenant: n.Tenant, Owner: n.Owner, Tags: n.Tags, Parent: n.Parent, Trace: n.Trace,
	}
	if b := n.Backoff; b != nil {
		m.Job.Backoff = forebay.Backoff{Kind: b.Kind, Base: time.Duration(b.Base), Cap: time.Duration(b.Cap), Jitter: b.Jitter}
	}
	if d := n.Dedup; d != nil {
		if d.Key == "" {
			return m, wrong("dedup.key", "dedup has no key; jobs with the same one mean the same")
		}
		m.DedupKey, m.DedupWindow, m.Job.Dedup = d.Key, time.Duration(d.Window), d.Mode
	}
	if r := n.Retention; r != nil {
		m.Job.Keep = forebay.Retention{Finished: r.Finished.keep(), Dead: r.Dead.keep()}
	}
	return m, nil
}

func (k *Keep) keep() forebay.Keep {
	if k == nil {
		return forebay.Keep{}
	}
	return forebay.Keep{Age: time.Duration(k.Age), Count: k.Count, None: k.None}
}

// apiFields are the names that the API has for what the broker calls otherwise.
var apiFields = map[string]string{
	"job.dedup": "dedup.mode", "dedupKey": "dedup.key", "dedupWindow": "dedup.window",
	"kind": "name", "notBefore": "runAt", "payload": "data",
}

// refused puts the API's names of fields into what the broker says of a message.
func refused(err error) error {
	var e *forebay.Error
	if !errors.As(err, &e) || e.Field == "" {
		return err
	}
	named := *e
	if name := apiFields[e.Field]; name != "" {
		named.Field = name
		return &named
	}
	for _, prefix := range []string{"job.", "limits."} {
		named.Field = strings.TrimPrefix(named.Field, prefix)
	}
	if rest, ok := strings.CutPrefix(named.Field, "keep"); ok {
		named.Field = "retention" + rest
	}
	return &named
}
