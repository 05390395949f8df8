package ingest

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/keyring"
)

// Replay judges refused events again, by the rules and schemas of now, and sends
// those that pass, with the time at which they first came. It answers per row, in
// their order, with Index the row's place in rows; those still bad say why. The
// rows themselves are not touched: whoever calls deletes what was not rejected.
// Repeating it is harmless, since an event without an id gets the same one again.
func (e *Edge) Replay(ctx context.Context, rows []badrow.Row) ([]Result, error) {
	results := make([]Result, 0, len(rows))
	for start := 0; start < len(rows); {
		end, size := start, 0
		for end < len(rows) && end-start < e.cfg.Limits.Events && (end == start || size+len(rows[end].Bytes) <= int(e.cfg.Limits.DecodedBytes)) {
			size += len(rows[end].Bytes)
			end++
		}
		part, err := e.replayPart(ctx, rows[start:end])
		if err != nil {
			return results, err
		}
		for _, r := range part {
			r.Index += start
			results = append(results, r)
		}
		start = end
	}
	return results, nil
}

func (e *Edge) replayPart(ctx context.Context, rows []badrow.Row) ([]Result, error) {
	c := &call{edge: e, item: newItem()}
	results := make([]Result, len(rows))
	for i := range rows {
		row := &rows[i]
		if bad := c.redraft(i, row); bad != nil {
			results[i] = Result{Index: i, ID: row.EventID, Status: Rejected, Code: bad.code, Pointer: bad.pointer, Message: bad.message}
		}
	}
	c.cutPayloads()
	if len(c.msgs) == 0 {
		return results, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	sent, err := e.cfg.Sender.Send(ctx, c.msgs)
	if err != nil {
		return nil, err
	}
	if len(sent) != len(c.msgs) {
		return nil, forebay.Errorf(forebay.CodeInternal, "ingest: replay", "%d answers for %d messages", len(sent), len(c.msgs))
	}
	for n, s := range sent {
		i := c.index[n]
		switch {
		case s.Err != nil:
			results[i] = Result{Index: i, ID: c.msgs[n].ID, Status: Rejected, Code: codeRefused, Message: s.Err.Error()}
		case s.Duplicate:
			results[i] = duplicateResult(i, s)
		default:
			results[i] = Result{Index: i, ID: s.ID, Status: Accepted}
		}
	}
	for _, r := range results {
		e.cfg.Observer.Verdict("replay", r.Status, r.Code)
	}
	return results, nil
}

// redraft makes the message of a bad row.
func (c *call) redraft(i int, row *badrow.Row) *fault {
	c.items = append(c.items, framed{raw: row.Bytes})
	d := dialectOf(row.Dialect)
	if d == nil {
		return &fault{codeUnknownType, "", "the dialect " + shorten(row.Dialect) + " is not known"}
	}
	if row.Cut {
		return &fault{codeTooLarge, "", "only the beginning of the event was kept"}
	}
	c.items[i].facts.scanValue(row.Bytes, 0)
	c.received, c.key = row.At, c.edge.keyOf(row.KeyID)
	// Of the row, not of its bytes alone: two equal events of one batch are two.
	name := fmt.Appendf(nil, "%d %s ", row.Seq, row.At.UTC().Format(time.RFC3339Nano))
	c.fallbackID = uuid.NewSHA1(uuid.NameSpaceOID, append(name, row.Bytes...)).String()
	return c.draft(i, d, time.Time{})
}

// keyOf finds a key by its id, also a revoked one, for its name.
func (e *Edge) keyOf(id string) keyring.Key {
	if e.cfg.Keys != nil {
		for _, k := range e.cfg.Keys.List() {
			if k.ID == id {
				return k
			}
		}
	}
	return keyring.Key{ID: id, Name: id}
}
