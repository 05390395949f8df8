package enginetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

var (
	_ engine.Jobs      = (*Model)(nil)
	_ engine.History   = (*Model)(nil)
	_ engine.JobLister = (*Model)(nil)
	_ engine.Documents = (*Model)(nil)
)

// items does something for each item of a plural call.
func items[In, Out any](ctx context.Context, e *Model, in []In, most int, f func(item In, now time.Time) Out) ([]Out, error) {
	if len(in) > most {
		return nil, fail(forebay.CodeInvalid, "%d items in one call", len(in))
	}
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	out := make([]Out, len(in))
	for i, item := range in {
		out[i] = f(item, now)
	}
	e.wake()
	return out, nil
}

func (e *Model) Job(ctx context.Context, id string) (forebay.Job, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return forebay.Job{}, err
	}
	defer e.mu.Unlock()
	j, ok := e.o.tell(id, now)
	if !ok {
		return forebay.Job{}, fail(forebay.CodeNotFound, "no job %q", id)
	}
	return j, nil
}

func (e *Model) Cancel(ctx context.Context, ids []string, reason string) ([]engine.CancelResult, error) {
	if err := engine.CheckText("reason", reason); err != nil {
		return nil, err
	}
	return items(ctx, e, ids, engine.MaxCancel, func(id string, now time.Time) engine.CancelResult { return e.o.cancel(id, reason, now) })
}

func (e *Model) Change(ctx context.Context, changes []engine.JobChange) ([]error, error) {
	return items(ctx, e, changes, engine.MaxCancel, e.o.change)
}

func (e *Model) Progress(ctx context.Context, updates []forebay.ProgressUpdate) ([]error, error) {
	return items(ctx, e, updates, engine.MaxProgress, e.o.progressed)
}

func (e *Model) Remove(ctx context.Context, ids []string) ([]error, error) {
	return items(ctx, e, ids, engine.MaxCancel, e.o.drop)
}

func (e *Model) History(ctx context.Context, q engine.HistoryQuery) (engine.HistoryPage, error) {
	if q.Limit < 0 || q.Limit > engine.MaxHistory || q.Wait < 0 || q.Wait > engine.MaxWait {
		return engine.HistoryPage{}, fail(forebay.CodeInvalid, "history %+v is out of bounds", q)
	}
	end := time.Now().Add(q.Wait)
	for {
		now, err := e.enter(ctx)
		if err != nil {
			return engine.HistoryPage{}, err
		}
		if q.After < 0 {
			q.After = int64(len(e.o.events))
		}
		page := e.o.page(q)
		changed := e.changed
		look, _ := e.o.nextChange()
		e.mu.Unlock()
		if len(page.Events) > 0 || !now.Before(end) {
			return page, nil
		}
		if look.IsZero() || look.After(end) {
			look = end
		}
		timer := time.NewTimer(look.Sub(now))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// page gives the events after a place.
func (o *oracle) page(q engine.HistoryQuery) engine.HistoryPage {
	page := engine.HistoryPage{Epoch: "model", Next: q.After}
	for _, ev := range o.events {
		if ev.Seq <= q.After || q.Job != "" && ev.Job != q.Job || q.Queue != "" && ev.Queue != q.Queue ||
			len(q.Types) > 0 && !slices.Contains(q.Types, ev.Type) ||
			!q.Since.IsZero() && ev.At.Before(q.Since) || !q.Until.IsZero() && !ev.At.Before(q.Until) {
			continue
		}
		if len(page.Events) == cmp.Or(q.Limit, engine.MaxHistory) {
			page.More = true
			return page
		}
		page.Events, page.Next = append(page.Events, ev), ev.Seq
	}
	page.Next = max(page.Next, int64(len(o.events)))
	return page
}

// listed is a job with its place in a listing.
type listed struct {
	forebay.Job
	section int
	seq     int64
}

// listing gives all jobs in the order of a listing.
func (o *oracle) listing(now time.Time) []listed {
	var all []listed
	for _, e := range o.entries {
		if e.job() {
			all = append(all, listed{e.told(now), sectionOf(e.state(now)), e.seq})
		}
	}
	for _, l := range o.letters {
		if j, ok := o.dead[l.Seq]; ok {
			all = append(all, listed{j, sectionOf(j.State), l.Seq})
		}
	}
	for _, f := range o.finished {
		all = append(all, listed{f.Job, sectionOf(f.State), f.seq})
	}
	slices.SortFunc(all, func(a, b listed) int { return cmp.Or(a.section-b.section, cmp.Compare(b.seq, a.seq)) })
	return all
}

func (e *Model) Jobs(ctx context.Context, q engine.JobQuery) (engine.JobPage, error) {
	var section int
	seq := int64(1 << 62)
	if _, err := fmt.Sscanf(q.After, "%d.%d", &section, &seq); q.After != "" && err != nil || q.Limit < 0 || q.Limit > engine.MaxJobs {
		return engine.JobPage{}, fail(forebay.CodeInvalid, "a limit of %d or a place %q is out of bounds", q.Limit, q.After)
	}
	now, err := e.enter(ctx)
	if err != nil {
		return engine.JobPage{}, err
	}
	defer e.mu.Unlock()
	var page engine.JobPage
	for _, j := range e.o.listing(now) {
		if j.section < section || j.section == section && j.seq >= seq || !q.Filter.Match(&j.Job) {
			continue
		}
		page.Jobs = append(page.Jobs, j.Job)
		if len(page.Jobs) == cmp.Or(q.Limit, engine.DefaultJobs) {
			page.Next = fmt.Sprintf("%d.%d", j.section, j.seq)
			break
		}
	}
	return page, nil
}

func (e *Model) Finished(ctx context.Context) (map[string]map[forebay.State]int64, error) {
	if _, err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	counts := make(map[string]map[forebay.State]int64)
	for _, f := range e.o.finished {
		if counts[f.Queue] == nil {
			counts[f.Queue] = make(map[forebay.State]int64)
		}
		counts[f.Queue][f.State]++
	}
	return counts, nil
}

type docName struct{ collection, key string }

// document finds one that has not expired.
func (o *oracle) document(name docName, now time.Time) (engine.Document, bool) {
	d, ok := o.docs[name]
	return d, ok && (d.Expires.IsZero() || now.Before(d.Expires))
}

func (e *Model) PutDocument(ctx context.Context, d engine.Document) (engine.Document, error) {
	if err := engine.CheckDocument(&d); err != nil {
		return engine.Document{}, err
	}
	now, err := e.enter(ctx)
	if err != nil {
		return engine.Document{}, err
	}
	defer e.mu.Unlock()
	name := docName{d.Collection, d.Key}
	was, ok := e.o.document(name, now)
	if !ok {
		was = engine.Document{}
	}
	if d.Rev != engine.AnyRev && d.Rev != was.Rev {
		return was, fail(forebay.CodeConflict, "document %q has the revision %d", d.Key, was.Rev)
	}
	e.o.rev++
	d.Rev, d.Value = e.o.rev, slices.Clone(d.Value)
	e.o.docs[name] = d
	return d, nil
}

func (e *Model) Document(ctx context.Context, collection, key string) (engine.Document, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return engine.Document{}, err
	}
	defer e.mu.Unlock()
	if d, ok := e.o.document(docName{collection, key}, now); ok {
		return d, nil
	}
	return engine.Document{}, fail(forebay.CodeNotFound, "no document %q", key)
}

func (e *Model) Documents(ctx context.Context, collection, after string, limit int) ([]engine.Document, error) {
	if limit < 1 || limit > engine.MaxDocuments {
		return nil, fail(forebay.CodeInvalid, "a limit of %d is out of bounds", limit)
	}
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	var out []engine.Document
	names := slices.SortedFunc(maps.Keys(e.o.docs), func(a, b docName) int { return cmp.Compare(a.key, b.key) })
	for _, name := range names {
		if d, ok := e.o.document(name, now); ok && name.collection == collection && name.key > after && len(out) < limit {
			out = append(out, d)
		}
	}
	return out, nil
}

func (e *Model) DeleteDocument(ctx context.Context, collection, key string, rev int64) error {
	now, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.mu.Unlock()
	name := docName{collection, key}
	d, ok := e.o.document(name, now)
	switch {
	case !ok:
		return fail(forebay.CodeNotFound, "no document %q", key)
	case rev != engine.AnyRev && rev != d.Rev:
		return fail(forebay.CodeConflict, "document %q has the revision %d", key, d.Rev)
	}
	delete(e.o.docs, name)
	return nil
}
