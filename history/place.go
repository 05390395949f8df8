package history

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// place is how far a replay is.
type place struct {
	Epoch string  `json:"epoch"`
	After int64   `json:"after"`
	First int64   `json:"first"`
	Last  int64   `json:"last,omitempty"` // where what is meant ends, about; 0: at End
	End   int64   `json:"end"`            // what was sent later is not of it
	Done  Outcome `json:"done"`
}

const (
	collection = "replay"
	placeKept  = 30 * 24 * time.Hour
)

// begin takes up the place of an earlier attempt, or begins at the first that is meant.
func (r *Replayer) begin(ctx context.Context, id string, req *Request, p *place) error {
	d, err := r.Documents.Document(ctx, collection, id)
	switch {
	case err == nil:
		return json.Unmarshal(d.Value, p)
	case forebay.CodeOf(err) != forebay.CodeNotFound:
		return err
	}
	newest, err := r.Log.ReadLog(ctx, engine.LogQuery{Queue: req.Queue, After: -1})
	if forebay.CodeOf(err) == forebay.CodeUnsupported {
		return forebay.Permanent(err)
	}
	if err != nil {
		return err
	}
	*p = place{Epoch: newest.Epoch, After: newest.Oldest, End: newest.Next}
	if !req.From.IsZero() {
		if p.After, err = r.before(ctx, req, req.From, p.After); err != nil {
			return err
		}
	}
	if !req.To.IsZero() {
		if p.Last, err = r.before(ctx, req, req.To, p.After); err != nil {
			return err
		}
	}
	p.First = p.After
	return nil
}

// before gives the place before the first message that was sent at a time or later, or
// one that is nearer to the beginning: the search has a bound.
func (r *Replayer) before(ctx context.Context, req *Request, at time.Time, after int64) (int64, error) {
	page, err := r.Log.ReadLog(ctx, engine.LogQuery{Queue: req.Queue, After: after, Since: at, Limit: 1})
	switch {
	case err != nil:
		return 0, err
	case len(page.Entries) > 0:
		return page.Entries[0].Seq - 1, nil
	}
	return max(page.Next, after), nil
}

// next reads what comes, and moves the place on.
func (r *Replayer) next(ctx context.Context, req *Request, p *place, limit int) (entries []engine.LogEntry, more bool, err error) {
	page, err := Read(ctx, r.Log, req.Selection, p.After, limit)
	if err != nil {
		return nil, false, err
	}
	if page.Epoch != p.Epoch {
		return nil, false, forebay.Permanent(forebay.Errorf(forebay.CodeConflict, "", "the store is another one than when the replay began"))
	}
	if page.Oldest > p.After { // retention was faster: what lies between is gone, and that is said
		p.Done.Gone, p.Done.Reason = true, "part of what was meant has left the log before it was read"
	}
	for _, e := range page.Entries {
		if e.Seq <= p.End {
			entries = append(entries, e)
		}
	}
	if page.More && page.Next == p.After {
		return nil, false, forebay.Errorf(forebay.CodeInternal, "", "the log says that there is more after %d, and does not give it", p.After)
	}
	p.After = page.Next
	return entries, page.More && page.Next < p.End, nil
}

func (r *Replayer) keep(ctx context.Context, id string, p *place) error {
	value, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = r.Documents.PutDocument(ctx, engine.Document{
		Collection: collection, Key: id, Rev: engine.AnyRev, Value: value, Expires: time.Now().Add(placeKept),
	})
	return err
}

func (o *Outcome) count(entries []engine.LogEntry) {
	if len(entries) == 0 {
		return
	}
	if o.Messages += int64(len(entries)); o.First.IsZero() {
		o.First = entries[0].SentAt
	}
	o.Last = entries[len(entries)-1].SentAt
}

func (p *place) percent() float64 {
	last := p.Last
	if last == 0 {
		last = p.End
	}
	if last <= p.First || p.After >= p.End {
		return 100
	}
	return math.Round(1000*float64(min(p.After, last)-p.First)/float64(last-p.First)) / 10
}
