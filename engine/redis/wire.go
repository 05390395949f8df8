package redis

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
)

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

type bullKept struct {
	Age   int64 `json:"age,omitempty"`
	Count int64 `json:"count,omitempty"`
}

type bullBackoff struct {
	Type   string  `json:"type"`
	Delay  float64 `json:"delay"`
	Jitter float64 `json:"jitter,omitempty"`
}

// text is the JSON of them. plain: up to the id, which is the last of it, and can be put
// there as it is. What most have is written here: reflection would cost more than all else
// that is done for a message.
func (o options) text() (text string, plain bool) {
	if strings.ContainsFunc(o.JobID, escaped) {
		return encode(o), false
	}
	o.JobID = ""
	const id = `,"jobId":"`
	kept, ok := o.RemoveOnComplete.(bullKept)
	if !ok || o.RemoveOnFail != nil || o.Priority != 0 || o.Delay != 0 || o.Backoff != nil || o.Dedup != nil {
		text = encode(o)
		return text[:len(text)-1] + id, true
	}
	b := strconv.AppendInt([]byte(`{"attempts":`), int64(o.Attempts), 10)
	b = append(b, `,"removeOnComplete":{`...)
	if kept.Age > 0 {
		b = strconv.AppendInt(append(b, `"age":`...), kept.Age, 10)
	}
	if kept.Count > 0 {
		if kept.Age > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `"count":`...), kept.Count, 10)
	}
	return string(append(append(b, '}'), id...)), true
}

// escaped are runes that JSON strings do not have as they are.
func escaped(r rune) bool { return r < ' ' || r >= 0x7f || strings.ContainsRune(`"\<>&`, r) }

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

// itemOf makes of a message what the scripts take.
func (e *Engine) itemOf(m *forebay.Message) sendItem {
	data, enc := storePayload(m.Payload)
	o := options{Attempts: cmp.Or(m.Limits.Attempts, forebay.DefaultAttempts), Priority: bullPriority(m.Priority), JobID: storedID(m.ID), RemoveOnComplete: true}
	r := rules{due: e.byServer(notBefore(m.NotBefore)), limit: m.LimitKey}
	if m.Group != "" {
		r.chain = "g:" + m.Group
	}
	if m.DedupKey != "" {
		r.record = "k:" + m.DedupKey
	}
	if j := m.Job; j != nil {
		r.tenant, r.expires, r.deadline = j.Tenant, e.byServer(millis(j.Expires)), e.byServer(millis(j.Deadline))
		o.RemoveOnComplete, o.RemoveOnFail = bullKeep(j.Keep.Finished), bullKeep(j.Keep.Dead)
		if j.Backoff.Kind != "" {
			o.Backoff = &bullBackoff{string(j.Backoff.Kind), float64(j.Backoff.Base.Milliseconds()), j.Backoff.Jitter}
		}
		if m.DedupKey != "" {
			r.dedup(m)
		}
	}
	if r.deid != "" {
		o.Dedup = map[string]any{"id": r.deid}
	}
	print := "p" + strconv.FormatUint(xxhash.Sum64(m.Payload), 36)
	if m.Fingerprint != 0 {
		print = "f" + strconv.FormatUint(m.Fingerprint, 36)
	}
	window := decimal(ceilMillis(cmp.Or(m.DedupWindow, forebay.DefaultDedupWindow)))
	it := sendItem{queue: m.Queue, id: o.JobID, kind: m.Kind, data: data, enc: enc, fb: extraOf(m), print: print, window: window}
	it.opts, it.plain = o.text()
	if r != (rules{}) || o.Priority != 0 {
		it.opts, it.plain = it.wholeOpts(), false
		it.rules = []string{
			decimal(r.due), decimal(int64(o.Priority)), r.chain, r.limit, r.tenant, r.record, r.mode, decimal(r.expires), decimal(r.deadline), r.deid,
		}
	}
	return it
}

func (it *sendItem) wholeOpts() string {
	if !it.plain {
		return it.opts
	}
	return it.opts + it.id + `"}`
}

// args are a message as lib/80_send.lua reads it.
func (it *sendItem) args() []any {
	return []any{packStrings(append([]string{it.queue, it.id, it.kind, it.enc, it.wholeOpts(), it.fb, it.print, it.window}, it.rules...)...), it.data}
}

// plainArgs are plain messages as lua/plain/send.lua reads them.
func plainArgs(items []sendItem) []any {
	args, runs, begun := []any{0}, 0, 0
	for i := range items {
		it := &items[i]
		if i == 0 || !it.same(&items[i-1]) {
			runs, begun = runs+1, len(args)
			args = append(args, 0, packStrings(it.queue, it.kind, it.enc, it.opts, it.fb, it.window))
		}
		args[begun] = args[begun].(int) + 1
		args = append(args, it.id, it.print, it.data)
	}
	args[0] = runs
	return args
}

// same tells of plain messages whether they have a head in common.
func (it *sendItem) same(o *sendItem) bool {
	return it.queue == o.queue && it.kind == o.kind && it.enc == o.enc && it.opts == o.opts && it.fb == o.fb && it.window == o.window
}

// rules are what the script has to know of a message that is not plain.
type rules struct {
	due, expires, deadline                   int64
	chain, limit, tenant, record, mode, deid string
}

// dedup sets what the dedup key of a job means.
func (r *rules) dedup(m *forebay.Message) {
	r.record, r.mode = "j:"+m.Queue+":"+m.DedupKey, modes[m.Job.Dedup]
	if m.Job.Dedup == forebay.DedupUntilFinished || m.Job.Dedup == forebay.DedupThrottle {
		r.deid = m.DedupKey
	}
	if m.Job.Dedup == forebay.DedupKeepLast && r.chain == "" {
		r.chain = "k:" + m.DedupKey
	}
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

// bullKeep is how Node keeps what it finishes.
func bullKeep(k forebay.Keep) any {
	switch {
	case k.None:
		return true
	case k.Age > 0 || k.Count > 0:
		return bullKept{int64((k.Age + time.Second - 1) / time.Second), int64(k.Count)}
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
	readExtra(s.fb, &m)
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
