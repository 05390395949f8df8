package redis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// hash are the fields of a job as stored, with what a script told beside.
type hash struct {
	queue, id string
	state     forebay.State
	due       int64
	f         map[string]string
}

func readHash(queue, id string, fields []any) hash {
	h := hash{queue: queue, id: id, f: make(map[string]string, len(fields)/2)}
	for i := 0; i+1 < len(fields); i += 2 {
		h.f[text(fields[i])] = text(fields[i+1])
	}
	return h
}

// isJob tells whether a ledger is kept of it.
func (h hash) isJob() bool { return isJob(h.f["fb"]) }

func (h hash) number(field string) int64 { return number(h.f[field]) }

func (h hash) message() forebay.Message {
	return stored{
		queue: h.queue, id: h.id, name: h.f["name"], data: h.f["data"], enc: h.f["fbb"], fb: h.f["fb"], opts: h.f["opts"], deid: h.f["deid"],
		priority: h.number("priority"),
	}.message()
}

// failed is how many attempts failed: BullMQ counts the one that succeeded too.
func (h hash) failed() int {
	n := int(h.number("atm"))
	if h.state == forebay.StateCompleted {
		n--
	}
	return max(n, 0)
}

// deliveries are counted in fbd, but for the first, which ats tells alone (lua/lib/20_record.lua).
func (h hash) deliveries() int {
	if h.f["fbd"] == "" && h.f["fb"] != "" {
		return int(min(h.number("ats"), 1))
	}
	return int(max(h.number("fbd"), 0))
}

func (h hash) failures(job bool) []forebay.Cause {
	var vs []string
	for i := range forebay.MaxFailures {
		if v, ok := h.f[fmt.Sprint("fbf", i)]; ok {
			vs = append(vs, v)
		}
	}
	return failures(vs, job)
}

func (h hash) cause() forebay.Cause {
	c := causeOf(h.f["fbu"], h.f["failedReason"])
	c.At = cmp.Or(c.At, atMillis(h.number("finishedOn")))
	return c
}

// keptProgress is a progress as we keep it, in the field fbh.
type keptProgress struct {
	Stage   string          `json:"s,omitempty"`
	Percent float64         `json:"p"`
	Message string          `json:"m,omitempty"`
	Data    json.RawMessage `json:"d,omitempty"`
	At      time.Time       `json:"t"`
}

func readProgress(s string) (p forebay.Progress, ok bool) {
	var k keptProgress
	if s == "" || json.Unmarshal([]byte(s), &k) != nil {
		return p, false
	}
	return forebay.Progress{Stage: k.Stage, Percent: k.Percent, Message: k.Message, Data: k.Data, At: k.At}, true
}

func (h hash) progress() forebay.Progress {
	if p, ok := readProgress(h.f["fbh"]); ok {
		return p
	}
	// Of a Node job: BullMQ's progress is any JSON, most often a percent.
	raw := h.f["progress"]
	if raw == "" || raw == "0" {
		return forebay.Progress{}
	}
	p := forebay.Progress{Data: []byte(raw)}
	if json.Unmarshal(p.Data, &p.Percent) == nil {
		p.Data = nil
	}
	return p
}

// job tells what is known.
func (h hash) job() forebay.Job {
	j := forebay.Job{
		Message: h.message(), State: h.state, Attempts: h.failed(), Deliveries: h.deliveries(), Progress: h.progress(),
		SentAt: atMillis(h.number("timestamp")), StartedAt: atMillis(h.number("processedOn")), FinishedAt: atMillis(h.number("finishedOn")),
		CancelRequested: h.f["fbc"] != "",
	}
	j.Failures = h.failures(true)
	if j.State == forebay.StateDelayed {
		j.Due = atMillis(h.due)
	}
	if !j.State.Final() {
		j.FinishedAt = time.Time{}
		return j
	}
	if j.State == forebay.StateCompleted {
		if h.f["fbz"] != string(forebay.StateCompleted) { // completed+, or a Node worker's
			j.Result = []byte(h.f["returnvalue"])
		}
		return j
	}
	j.Cause, j.DeadSeq = h.cause(), h.number("fbq")
	return j
}

// letter makes a dead letter.
func (h hash) letter() forebay.DeadLetter {
	m := h.message()
	l := forebay.DeadLetter{
		Seq: h.number("fbq"), Message: m, Cause: h.cause(), Attempts: h.failed(), Deliveries: h.deliveries(),
		Failures: h.failures(m.Job != nil), SentAt: atMillis(h.number("timestamp")), DiedAt: atMillis(h.number("finishedOn")),
	}
	l.Fingerprint, _ = engine.DeadFingerprint(m.Queue, m.Kind, l.Cause)
	return l
}
