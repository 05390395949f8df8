package redis

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
)

// extra is the field fb: all of a message for which BullMQ has no field.
type extra struct {
	Headers    map[string]string `json:"h,omitempty"`
	Attempts   int               `json:"a,omitempty"`
	Deliveries int               `json:"d,omitempty"`
	DedupKey   string            `json:"k,omitempty"`
	Window     time.Duration     `json:"w,omitempty"`
	Group      string            `json:"g,omitempty"`
	LimitKey   string            `json:"l,omitempty"`
	Due        time.Time         `json:"n,omitzero"`
	Job        *jobExtra         `json:"j,omitempty"`
}

// jobExtra are the options of a job.
type jobExtra struct {
	Timeout  time.Duration     `json:"t,omitempty"`
	Deadline time.Time         `json:"d,omitzero"`
	Expires  time.Time         `json:"e,omitzero"`
	Backoff  forebay.Backoff   `json:"b,omitzero"`
	Dedup    forebay.DedupMode `json:"m,omitempty"`
	Tenant   string            `json:"n,omitempty"`
	Owner    string            `json:"o,omitempty"`
	Tags     []string          `json:"g,omitempty"`
	Parent   string            `json:"p,omitempty"`
	Trace    string            `json:"x,omitempty"`
	Keep     forebay.Retention `json:"k,omitzero"`
}

// options are those of BullMQ, so that Node workers and bull-board know what to do.
type options struct {
	Attempts         int            `json:"attempts"`
	Delay            int64          `json:"delay,omitempty"`
	Priority         int            `json:"priority,omitempty"`
	Backoff          *bullBackoff   `json:"backoff,omitempty"`
	RemoveOnComplete any            `json:"removeOnComplete,omitempty"`
	RemoveOnFail     any            `json:"removeOnFail,omitempty"`
	JobID            string         `json:"jobId,omitempty"`
	Dedup            map[string]any `json:"de,omitempty"`
}

type bullBackoff struct {
	Type   string  `json:"type"`
	Delay  float64 `json:"delay"`
	Jitter float64 `json:"jitter,omitempty"`
}

// Ways in which the field data holds a payload: as it is where that is JSON, which
// Node reads, else as a JSON string of base64.
const (
	encJSON   = ""
	encBase64 = "b"
	encEmpty  = "e"
)

func storePayload(p []byte) (data, enc string) {
	switch {
	case len(p) == 0:
		return "{}", encEmpty
	case json.Valid(p):
		return string(p), encJSON
	}
	return `"` + base64.StdEncoding.EncodeToString(p) + `"`, encBase64
}

func readPayload(data, enc string) []byte {
	switch enc {
	case encEmpty:
		return nil
	case encBase64:
		p, err := base64.StdEncoding.DecodeString(strings.Trim(data, `"`))
		if err != nil {
			return []byte(data)
		}
		return p
	}
	return []byte(data)
}

// bullPriority: level 5, the default, is BullMQ's none; the others are 1 to 10.
func bullPriority(p forebay.Priority) int {
	if p.Level() == 5 {
		return 0
	}
	return p.Level() + 1
}

func fromBullPriority(n int64) forebay.Priority {
	if n == 0 {
		return 0
	}
	return forebay.At(int(min(n-1, 9)))
}

// modes are the words of scripts for the dedup modes of jobs.
var modes = map[forebay.DedupMode]string{
	forebay.DedupWindowed: "w", forebay.DedupUntilFinished: "u", forebay.DedupThrottle: "t", forebay.DedupDebounce: "d", forebay.DedupKeepLast: "k",
}

// messageArg is a message as lib/80_send.lua reads it.
func messageArg(m *forebay.Message) string {
	data, enc := storePayload(m.Payload)
	x := extra{
		Headers: m.Headers, Attempts: m.Limits.Attempts, Deliveries: m.Limits.Deliveries, DedupKey: m.DedupKey, Window: m.DedupWindow,
		Group: m.Group, LimitKey: m.LimitKey, Due: m.NotBefore,
	}
	o := options{Attempts: cmp.Or(m.Limits.Attempts, forebay.DefaultAttempts), Priority: bullPriority(m.Priority), JobID: storedID(m.ID), RemoveOnComplete: true}
	print := "p" + strconv.FormatUint(xxhash.Sum64(m.Payload), 36)
	if m.Fingerprint != 0 {
		print = "f" + strconv.FormatUint(m.Fingerprint, 36)
	}
	chain, record, mode, deid := "", "", "", ""
	if m.Group != "" {
		chain = "g:" + m.Group
	}
	if m.DedupKey != "" {
		record = "k:" + m.DedupKey
	}
	var tenant, job, keep string
	var expires, deadline int64
	if j := m.Job; j != nil {
		x.Job = &jobExtra{
			Timeout: j.Timeout, Deadline: j.Deadline, Expires: j.Expires, Backoff: j.Backoff, Dedup: j.Dedup, Tenant: j.Tenant,
			Owner: j.Owner, Tags: j.Tags, Parent: j.Parent, Trace: j.Trace, Keep: j.Keep,
		}
		job, tenant, expires, deadline, keep = "1", j.Tenant, millis(j.Expires), millis(j.Deadline), keepArg(j.Keep)
		o.RemoveOnComplete, o.RemoveOnFail = bullKeep(j.Keep.Finished), bullKeep(j.Keep.Dead)
		if j.Backoff.Kind != "" {
			o.Backoff = &bullBackoff{string(j.Backoff.Kind), float64(j.Backoff.Base.Milliseconds()), j.Backoff.Jitter}
		}
		if m.DedupKey != "" {
			record, mode = "j:"+m.Queue+":"+m.DedupKey, modes[j.Dedup]
			if j.Dedup == forebay.DedupUntilFinished || j.Dedup == forebay.DedupThrottle {
				deid = m.DedupKey
			}
			if j.Dedup == forebay.DedupKeepLast && chain == "" {
				chain = "k:" + m.DedupKey
			}
		}
	}
	if deid != "" {
		o.Dedup = map[string]any{"id": deid}
	}
	window := cmp.Or(m.DedupWindow, forebay.DefaultDedupWindow)
	return packStrings(
		m.Queue, o.JobID, m.Kind, data, enc, encode(o), decimal(notBefore(m.NotBefore)), decimal(int64(o.Priority)), encode(x), print,
		decimal(ceilMillis(window)), chain, m.LimitKey, tenant, record, mode, job, decimal(expires), decimal(deadline), keep, deid,
	)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// encode makes JSON of what always has some.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(b)
}

func keepArg(r forebay.Retention) string {
	if r == (forebay.Retention{}) {
		return ""
	}
	none := 0
	if r.Finished.None {
		none = 1
	}
	return fmt.Sprintf("%d,%d,%d,%d,%d", ceilMillis(r.Finished.Age), r.Finished.Count, none, ceilMillis(r.Dead.Age), r.Dead.Count)
}

// bullKeep is how Node keeps what it finishes.
func bullKeep(k forebay.Keep) any {
	switch {
	case k.None:
		return true
	case k.Age > 0 || k.Count > 0:
		out := make(map[string]int64)
		if k.Age > 0 {
			out["age"] = int64((k.Age + time.Second - 1) / time.Second)
		}
		if k.Count > 0 {
			out["count"] = int64(k.Count)
		}
		return out
	}
	return nil
}

// stored are the fields of a hash from which a message is made.
type stored struct {
	queue, id, name, data, enc, fb, opts, deid string
	priority                                   int64
}

// message makes a message of what is stored; a Node job becomes one with options as
// near as there are.
func (s stored) message() forebay.Message {
	m := forebay.Message{ID: messageID(s.id), Queue: s.queue, Kind: s.name, Payload: readPayload(s.data, s.enc), Priority: fromBullPriority(s.priority)}
	if s.fb == "" {
		s.foreign(&m)
		return m
	}
	var x extra
	if json.Unmarshal([]byte(s.fb), &x) != nil {
		return m // damaged by somebody else: what is left of it still comes
	}
	m.Headers, m.DedupKey, m.DedupWindow, m.Group, m.LimitKey, m.NotBefore = x.Headers, x.DedupKey, x.Window, x.Group, x.LimitKey, x.Due
	m.Limits = forebay.Limits{Attempts: x.Attempts, Deliveries: x.Deliveries}
	if j := x.Job; j != nil {
		m.Job = &forebay.JobOptions{
			Timeout: j.Timeout, Deadline: j.Deadline, Expires: j.Expires, Backoff: j.Backoff, Dedup: j.Dedup, Tenant: j.Tenant,
			Owner: j.Owner, Tags: j.Tags, Parent: j.Parent, Trace: j.Trace, Keep: j.Keep,
		}
	}
	return m
}

func (s stored) foreign(m *forebay.Message) {
	m.ID, m.DedupKey, m.Job = foreignID(s.queue, s.id), s.deid, &forebay.JobOptions{}
	var o struct {
		Attempts int `json:"attempts"`
		Backoff  struct {
			Type   string  `json:"type"`
			Delay  float64 `json:"delay"`
			Jitter float64 `json:"jitter"`
		} `json:"backoff"`
	}
	if json.Unmarshal([]byte(s.opts), &o) != nil {
		return
	}
	m.Limits.Attempts = max(o.Attempts, 1)
	// Without a backoff BullMQ tries again at once.
	m.Job.Backoff = forebay.Backoff{Kind: forebay.BackoffFixed, Base: time.Millisecond}
	if o.Backoff.Delay > 0 {
		m.Job.Backoff = forebay.Backoff{Kind: forebay.BackoffFixed, Base: time.Duration(o.Backoff.Delay * float64(time.Millisecond)), Jitter: max(o.Backoff.Jitter, 0.001)}
		if o.Backoff.Type == "exponential" {
			m.Job.Backoff.Kind = forebay.BackoffExponential
		}
	}
}

// readCause reads what fbu and fbf hold: attempt, its start, when it failed, and JSON.
func readCause(s string) (c forebay.Cause, whole bool) {
	parts := strings.SplitN(s, "|", 4)
	if len(parts) != 4 || json.Unmarshal([]byte(parts[3]), &c) != nil {
		return c, false
	}
	if c.At.IsZero() {
		c.At = atMillis(number(parts[2]))
	}
	return c, true
}

// readFailure is readCause of a job's attempt.
func readFailure(s string, job bool) (c forebay.Cause, attempt int64) {
	c, _ = readCause(s)
	parts := strings.SplitN(s, "|", 3)
	attempt = number(parts[0])
	if job && len(parts) > 1 {
		c.Attempt, c.Started = int(attempt), atMillis(number(parts[1]))
	}
	return c, attempt
}
