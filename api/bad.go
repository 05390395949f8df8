package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/ingest"
)

// BadRow is an event that the edge refused, as it is shown.
type BadRow struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	KeyID   string    `json:"keyId,omitempty"`
	Dialect string    `json:"dialect"`
	Index   int       `json:"index" doc:"Its place in its batch."`
	EventID string    `json:"eventId,omitempty"`
	Code    string    `json:"code"`
	Pointer string    `json:"pointer,omitempty" doc:"A JSON pointer to what is wrong."`
	Reason  string    `json:"reason"`
	Size    int       `json:"size" doc:"Bytes that are kept."`
	Cut     bool      `json:"cut,omitempty" doc:"Only the beginning is kept; it cannot be replayed."`
	Content *Content  `json:"content,omitempty" doc:"Shown for a single row, not in lists."`
}

// BadList is one page of bad rows, newest first.
type BadList struct {
	Items []BadRow `json:"items" nullable:"false"`
	Next  int64    `json:"next,omitempty" doc:"before= of the next page; absent: this is the last."`
}

// BadFilter selects bad rows.
type BadFilter struct {
	Code  string `json:"code,omitempty" query:"code"`
	KeyID string `json:"key,omitempty" query:"key" doc:"The id of the write key."`
}

// BadReplay says which bad rows to validate and send again.
type BadReplay struct {
	Selection
	BadFilter
}

// BadDiscard says which bad rows to remove for good, and why.
type BadDiscard struct {
	Selection
	BadFilter
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"For the log."`
}

type badQuery struct {
	BadFilter
	Before int64 `query:"before" minimum:"0" doc:"Only with a smaller seq; 0: from the newest."`
	Limit  int   `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

func (a *API) badRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/bad", "list-bad", "List bad rows, newest first"),
		func(ctx context.Context, in *badQuery) (*answer[BadList], error) {
			return reply(a.listBad(ctx, in))
		})
	huma.Register(h, operation(http.MethodGet, "/api/bad/{seq}", "get-bad", "Show a bad row with its bytes"),
		func(ctx context.Context, in *struct {
			Seq int64 `path:"seq" minimum:"1"`
		}) (*answer[BadRow], error) {
			r, err := a.cfg.Bad.Get(ctx, in.Seq)
			return reply(badOf(&r, true), err)
		})
	huma.Register(h, operation(http.MethodPost, "/api/bad/replay", "replay-bad", "Validate bad rows again, and send those that pass"),
		func(ctx context.Context, in *answer[BadReplay]) (*answer[Outcome], error) {
			out, err := a.badAction(in.Body.BadFilter, a.replayBad).run(ctx, in.Body.Selection, in.Body.BadFilter != BadFilter{})
			a.told(ctx, "bad rows replayed", out, err, "filter", in.Body.BadFilter)
			return reply(out, err)
		})
	huma.Register(h, operation(http.MethodPost, "/api/bad/discard", "discard-bad", "Remove bad rows for good"),
		func(ctx context.Context, in *answer[BadDiscard]) (*answer[Outcome], error) {
			out, err := a.badAction(in.Body.BadFilter, a.cfg.Bad.Delete).run(ctx, in.Body.Selection, in.Body.BadFilter != BadFilter{})
			a.told(ctx, "bad rows discarded", out, err, "filter", in.Body.BadFilter, "reason", in.Body.Reason)
			return reply(out, err)
		})
}

func (a *API) listBad(ctx context.Context, in *badQuery) (BadList, error) {
	rows, err := a.cfg.Bad.List(ctx, in.store(in.Before, in.Limit))
	if err != nil {
		return BadList{}, err
	}
	list := BadList{Items: make([]BadRow, len(rows))}
	for i := range rows {
		list.Items[i] = badOf(&rows[i], false)
	}
	if len(rows) > 0 { // a page of large rows may be short and not the last
		list.Next = rows[len(rows)-1].Seq
	}
	return list, nil
}

// replayBytes bounds the rows that are held at once: each may have badrow.MaxRowBytes.
const replayBytes = 4 << 20

// replayBad sends rows again and removes those that are on their queue now. A
// crash in between leaves a row whose next replay is a duplicate: nothing is lost.
func (a *API) replayBad(ctx context.Context, seqs []int64) ([]error, error) {
	if a.cfg.Edge == nil {
		return nil, forebay.Errorf(forebay.CodeUnsupported, "", "this server has no edge to replay bad rows through")
	}
	errs := make([]error, len(seqs))
	var rows []badrow.Row
	var at []int // index in seqs of each row
	size := 0
	for i, seq := range seqs {
		r, err := a.cfg.Bad.Get(ctx, seq)
		if err != nil {
			errs[i] = err
			continue
		}
		rows, at, size = append(rows, r), append(at, i), size+len(r.Bytes)
		if size < replayBytes {
			continue
		}
		if err := a.replayRows(ctx, rows, at, errs); err != nil {
			return nil, err
		}
		rows, at, size = nil, nil, 0
	}
	return errs, a.replayRows(ctx, rows, at, errs)
}

// replayRows replays rows and puts what is wrong with each into errs, at its index.
func (a *API) replayRows(ctx context.Context, rows []badrow.Row, at []int, errs []error) error {
	results, err := a.cfg.Edge.Replay(ctx, rows)
	if err != nil {
		return err
	}
	var sent []int64
	for j, r := range results {
		if r.Status == ingest.Rejected {
			e := forebay.Errorf(forebay.Code(r.Code), "", "%s", r.Message)
			e.Field = r.Pointer
			errs[at[j]] = e
			continue
		}
		sent = append(sent, rows[j].Seq)
	}
	_, err = a.cfg.Bad.Delete(ctx, sent) // one that has gone meanwhile is gone
	return err
}

func (a *API) badAction(f BadFilter, do func(context.Context, []int64) ([]error, error)) action {
	return action{do: do, list: func(ctx context.Context, before int64, limit int) ([]int64, error) {
		rows, err := a.cfg.Bad.List(ctx, f.store(before, limit))
		seqs := make([]int64, len(rows))
		for i := range rows {
			seqs[i] = rows[i].Seq
		}
		return seqs, err
	}}
}

func (f BadFilter) store(before int64, limit int) badrow.Query {
	return badrow.Query{Code: f.Code, KeyID: f.KeyID, Before: before, Limit: limit}
}

func badOf(r *badrow.Row, content bool) BadRow {
	v := BadRow{
		Seq: r.Seq, At: r.At, KeyID: r.KeyID, Dialect: r.Dialect, Index: r.Index, EventID: r.EventID, Code: r.Code,
		Pointer: r.Pointer, Reason: r.Reason, Size: len(r.Bytes), Cut: r.Cut,
	}
	if content {
		v.Content = contentOf(r.Bytes)
	}
	return v
}
