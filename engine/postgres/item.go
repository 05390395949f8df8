package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// States of an item.
const (
	ready   = 0
	delayed = 1
	active  = 2
	behind  = 3 // another of its chain is before it
	heldUp  = 4 // its limit key has no place free
)

// item is a message that waits or is active: a row of item, and of body without the payload.
type item struct {
	seq                  int64
	queue                int32
	state                int16
	rank, sent, due      int64
	until, alarm, token  int64
	attempts, deliveries int32
	size                 int32
	job                  bool
	tenant, chain, key   string
	expires, deadline    int64
	started              int64
	extra                extra
	id, kind, dedup      string
	meta                 meta
	payload              []byte // of a new one, or of one whose payload changes
	bodyOf               int64  // the dead letter that it was
	older                int64  // a finished job that had its id before
	fresh, changed, gone bool
	rewritten, keptBody  bool // the payload changes; the body outlives the item
}

// extra is what only some items have.
type extra struct {
	Failures []forebay.Cause `json:"f,omitempty"`
	Progress *keptProgress   `json:"p,omitempty"`
	Stop     *string         `json:"s,omitempty"` // it was asked to, because of this
}

type keptProgress struct {
	forebay.Progress
	Data json.RawMessage `json:"data,omitempty"`
}

func (p *keptProgress) progress() forebay.Progress {
	if p == nil {
		return forebay.Progress{}
	}
	out := p.Progress
	out.Data = p.Data
	return out
}

// meta is what a message says beside its payload.
type meta struct {
	Headers   map[string]string   `json:"h,omitempty"`
	Priority  forebay.Priority    `json:"p,omitempty"`
	NotBefore time.Time           `json:"n,omitzero"`
	DedupKey  string              `json:"k,omitempty"`
	Window    time.Duration       `json:"w,omitempty"`
	Group     string              `json:"g,omitempty"`
	LimitKey  string              `json:"l,omitempty"`
	Limits    forebay.Limits      `json:"x,omitzero"`
	Job       *forebay.JobOptions `json:"j,omitempty"`
}

func metaOf(m *forebay.Message) meta {
	return meta{m.Headers, m.Priority, m.NotBefore, m.DedupKey, m.DedupWindow, m.Group, m.LimitKey, m.Limits, m.Job}
}

// message makes a message of what is stored.
func (m *meta) message(id, queue, kind string, payload []byte) forebay.Message {
	if len(payload) == 0 {
		payload = nil
	}
	return forebay.Message{
		ID: id, Queue: queue, Kind: kind, Payload: payload, Headers: m.Headers, Priority: m.Priority, NotBefore: m.NotBefore,
		DedupKey: m.DedupKey, DedupWindow: m.Window, Group: m.Group, LimitKey: m.LimitKey, Limits: m.Limits, Job: m.Job,
	}
}

// encode makes JSON of what always has some.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

func decode(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fail(forebay.CodeDamaged, "a stored value cannot be read: %v", err)
	}
	return nil
}

func (x *extra) empty() bool { return len(x.Failures) == 0 && x.Progress == nil && x.Stop == nil }

func (x *extra) encode() []byte {
	if x.empty() {
		return nil
	}
	return encode(x)
}

// rankOf orders messages: by age, and a level of priority counts as some of it.
func rankOf(sent int64, p forebay.Priority) int64 {
	return sent + int64(p.Level())*engine.Ageing.Microseconds()
}

// chainOf names what runs one after the other: a group, or jobs of a key of which the last
// is kept.
func chainOf(m *forebay.Message) string {
	switch {
	case m.Group != "":
		return "g:" + m.Group
	case m.Job != nil && m.Job.Dedup == forebay.DedupKeepLast:
		return "k:" + m.DedupKey
	}
	return ""
}

func tenantOf(m *forebay.Message) string {
	if m.Job == nil {
		return ""
	}
	return m.Job.Tenant
}

// special tells a message for which more is looked at than its own row.
func special(m *forebay.Message) bool {
	return chainOf(m) != "" || m.LimitKey != "" || tenantOf(m) != ""
}

// replaces tells a job that may change another one that waits.
func replaces(m *forebay.Message) bool {
	return m.Job != nil && (m.Job.Dedup == forebay.DedupDebounce || m.Job.Dedup == forebay.DedupKeepLast)
}

const itemColumns = `i.seq, i.queue, i.state, i.rank, i.sent, i.due, i.until, coalesce(i.alarm, 0), i.token, i.attempts, i.deliveries, i.size, i.job,
	i.tenant, coalesce(i.chain, ''), coalesce(i.limit_key, ''), i.expires, i.deadline, i.started, i.extra, b.id, b.kind, coalesce(b.dedup, ''), b.meta`

// scan reads itemColumns, and what comes after them.
func (it *item) scan(rows pgx.Rows, more ...any) error {
	var x, m []byte
	to := append([]any{
		&it.seq, &it.queue, &it.state, &it.rank, &it.sent, &it.due, &it.until, &it.alarm, &it.token, &it.attempts, &it.deliveries, &it.size, &it.job,
		&it.tenant, &it.chain, &it.key, &it.expires, &it.deadline, &it.started, &x, &it.id, &it.kind, &it.dedup, &m,
	}, more...)
	if err := rows.Scan(to...); err != nil {
		return err
	}
	if x != nil {
		if err := decode(x, &it.extra); err != nil {
			return err
		}
	}
	return decode(m, &it.meta)
}

// load reads and locks items by a condition; those that the work knows already stay as it
// knows them.
func (w *work) load(ctx context.Context, where string, args ...any) ([]*item, error) {
	rows, err := w.conn.Query(ctx, w.e.q(`SELECT `+itemColumns+` FROM ~item i JOIN ~body b ON b.seq = i.seq WHERE `+where), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*item
	for rows.Next() {
		it := &item{}
		if err := it.scan(rows); err != nil {
			return nil, err
		}
		if known := w.items[it.seq]; known != nil {
			it = known
		} else {
			w.items[it.seq] = it
			w.order = append(w.order, it)
		}
		if !it.gone {
			out = append(out, it)
		}
	}
	return out, rows.Err()
}

// bySeq loads and locks items by their numbers.
func (w *work) bySeq(ctx context.Context, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	_, err := w.load(ctx, `i.seq = ANY($1) ORDER BY i.seq FOR UPDATE OF i`, seqs)
	return err
}
