package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

const (
	bulkCollection = "bulk_action"
	bulkKept       = 30 * 24 * time.Hour
)

// bulkState is how far an action on many jobs is, over all its runs.
type bulkState struct {
	Out     BulkOutcome `json:"out"`
	Begun   bool        `json:"begun"`
	Total   int         `json:"total"` // counted when it began
	After   string      `json:"after"` // where the next page begins
	Last    bool        `json:"last"`  // there is none
	Page    int         `json:"page"`
	Pending []string    `json:"pending,omitempty"` // what the page is about

	rev int64
}

func (r *bulkRun) load(ctx context.Context) error {
	d, err := r.b.Document(ctx, bulkCollection, r.job.Key())
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		r.s = bulkState{Out: BulkOutcome{Action: r.data.Action}}
		return nil
	}
	if err != nil {
		return err
	}
	r.s.rev = d.Rev
	if err := json.Unmarshal(d.Value, &r.s); err != nil {
		return forebay.Errorf(forebay.CodeDamaged, "api: jobs", "the action %s: %w", d.Key, err)
	}
	return nil
}

// save fails where another run of the same job has taken over.
func (r *bulkRun) save(ctx context.Context) error {
	value, err := json.Marshal(&r.s)
	if err != nil {
		return err
	}
	d, err := r.b.PutDocument(ctx, engine.Document{
		Collection: bulkCollection, Key: r.job.Key(), Rev: r.s.rev, Value: value, Expires: r.job.SentAt.Add(bulkKept),
	})
	if err == nil {
		r.s.rev = d.Rev
	}
	return err
}

func (r *bulkRun) effectKey() string { return fmt.Sprintf("bulk/%s/%d", r.job.Key(), r.s.Page) }

// retry remembers what became of a page: a job that was not dead is sent anew, which
// a second run would do again.
func (r *bulkRun) retry(ctx context.Context, ids []string) ([]error, error) {
	type failed struct {
		Code forebay.Code
		Text string
	}
	kept, err := r.b.Effect(ctx, r.effectKey(), func(ctx context.Context) ([]byte, error) {
		results, err := r.b.Retry(ctx, ids)
		if err != nil {
			return nil, err
		}
		all := make(map[string]failed)
		for i := range results {
			if e := results[i].Err; e != nil {
				all[ids[i]] = failed{forebay.CodeOf(e), forebay.TextOf(e)}
			}
		}
		return json.Marshal(all)
	})
	if err != nil {
		return nil, err
	}
	var all map[string]failed
	if err := json.Unmarshal(kept, &all); err != nil {
		return nil, err
	}
	errs := make([]error, len(ids))
	for i, id := range ids {
		if f, bad := all[id]; bad {
			errs[i] = forebay.Errorf(f.Code, "", "%s", f.Text)
		}
	}
	return errs, nil
}
