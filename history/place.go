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
	End   int64   `json:"end"`   // what was sent later is not of it
	Total int64   `json:"total"` // messages that were to be looked at, about
	Left  int64   `json:"left"`  // of them
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
	first, err := r.Log.ReadLog(ctx, engine.LogQuery{Queue: req.Queue, After: p.After, Since: req.From, Until: req.To, Limit: 1})
	if err != nil {
		return err
	}
	p.After, p.Total = max(p.After, first.Next), first.Left // the search has a bound: it may not have come to the first
	if len(first.Entries) > 0 {
		p.After, p.Total = first.Entries[0].Seq-1, first.Left+1
	}
	return nil
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
	p.After, p.Left = page.Next, page.Left
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
	if p.After >= p.End || p.Total == 0 {
		return 100
	}
	return math.Round(1000*float64(max(0, p.Total-p.Left))/float64(p.Total)) / 10
}
