package redis

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// extra is what the field fb holds after its head: all of a message for which BullMQ
// has no field.
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
	Keep     forebay.Retention `json:"k,omitzero"` // where the head cannot tell it
}

// Heads of the field fb begin with one of these, as lib/20_record.lua says.
const (
	headJob     = 'j'
	headMessage = 'm'
)

// plainJob is the extra of a job without options, which most are.
const plainJob = `{"j":{}}`

// extraOf is the field fb of a message.
func extraOf(m *forebay.Message) string {
	x := extra{
		Headers: m.Headers, Attempts: m.Limits.Attempts, Deliveries: m.Limits.Deliveries, DedupKey: m.DedupKey, Window: m.DedupWindow,
		Group: m.Group, LimitKey: m.LimitKey, Due: m.NotBefore,
	}
	j := m.Job
	if j == nil {
		return string(headMessage) + "|" + encode(x)
	}
	head, whole := headOf(j.Keep)
	x.Job = &jobExtra{
		Timeout: j.Timeout, Deadline: j.Deadline, Expires: j.Expires, Backoff: j.Backoff, Dedup: j.Dedup, Tenant: j.Tenant,
		Owner: j.Owner, Tags: j.Tags, Parent: j.Parent, Trace: j.Trace,
	}
	if !whole {
		x.Job.Keep = j.Keep
	}
	if len(m.Headers) == 0 && m.Limits == (forebay.Limits{}) && m.DedupKey == "" && m.DedupWindow == 0 && m.Group == "" && m.LimitKey == "" &&
		m.NotBefore.IsZero() && x.Job.none() {
		return head + plainJob
	}
	return head + encode(x)
}

func (j *jobExtra) none() bool {
	return j.Timeout == 0 && j.Deadline.IsZero() && j.Expires.IsZero() && j.Backoff == (forebay.Backoff{}) && j.Dedup == "" && j.Tenant == "" &&
		j.Owner == "" && len(j.Tags) == 0 && j.Parent == "" && j.Trace == "" && j.Keep == (forebay.Retention{})
}

// headOf is the head of a job: its retention in ms. whole: nothing of it is lost.
func headOf(r forebay.Retention) (head string, whole bool) {
	if r == (forebay.Retention{}) {
		return string(headJob) + "|", true
	}
	none := int64(0)
	if r.Finished.None {
		none = 1
	}
	b := []byte{headJob}
	for i, n := range []int64{ceilMillis(r.Finished.Age), int64(r.Finished.Count), none, ceilMillis(r.Dead.Age), int64(r.Dead.Count)} {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	head = string(append(b, '|'))
	return head, retentionOf(head[1:len(head)-1]) == r
}

func retentionOf(s string) (r forebay.Retention) {
	if s == "" {
		return r
	}
	var n [5]int64
	for i := range n {
		var one string
		one, s, _ = strings.Cut(s, ",")
		n[i] = number(one)
	}
	r.Finished = forebay.Keep{Age: time.Duration(n[0]) * time.Millisecond, Count: int(n[1]), None: n[2] == 1}
	r.Dead = forebay.Keep{Age: time.Duration(n[3]) * time.Millisecond, Count: int(n[4])}
	return r
}

// isJob tells of a field fb whether a ledger is kept; a Node job has none, and is one.
func isJob(fb string) bool { return fb == "" || fb[0] == headJob }

// readExtra sets what fb tells of a message.
func readExtra(fb string, m *forebay.Message) {
	head, rest, _ := strings.Cut(fb, "|")
	var x extra
	if rest == plainJob {
		x.Job = &jobExtra{}
	} else if json.Unmarshal([]byte(rest), &x) != nil {
		return // damaged by somebody else: what is left of it still comes
	}
	m.Headers, m.DedupKey, m.DedupWindow, m.Group, m.LimitKey, m.NotBefore = x.Headers, x.DedupKey, x.Window, x.Group, x.LimitKey, x.Due
	m.Limits = forebay.Limits{Attempts: x.Attempts, Deliveries: x.Deliveries}
	if j := x.Job; j != nil {
		if j.Keep == (forebay.Retention{}) && head != "" {
			j.Keep = retentionOf(head[1:])
		}
		m.Job = &forebay.JobOptions{
			Timeout: j.Timeout, Deadline: j.Deadline, Expires: j.Expires, Backoff: j.Backoff, Dedup: j.Dedup, Tenant: j.Tenant,
			Owner: j.Owner, Tags: j.Tags, Parent: j.Parent, Trace: j.Trace, Keep: j.Keep,
		}
	}
}
