package redis

import (
	"context"
	"encoding/json"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// find gives the record of an id. known is false where there is none (any more); then
// the state is WhereDone in the words of the script, or empty.
func (e *Engine) find(ctx context.Context, id string) (h hash, known bool, err error) {
	v, err := e.run(ctx, "job", idArgs(id)...)
	if err != nil || len(v.out) == 0 {
		return h, false, err
	}
	queue, state := text(v.out[0]), forebay.State(text(v.out[1]))
	if len(v.out) < 5 {
		return hash{queue: queue, state: state}, false, nil
	}
	h = readHash(queue, text(v.out[4]), v.extra)
	h.state, h.due = state, e.byHere(number(v.out[2]))
	h.f["within"] = text(v.out[3])
	return h, true, nil
}

// Locate tells where a message is; see engine.Locator.
func (e *Engine) Locate(ctx context.Context, id string) (engine.Location, error) {
	if err := e.enter(); err != nil {
		return engine.Location{}, err
	}
	defer e.leave()
	h, known, err := e.find(ctx, id)
	switch {
	case err != nil:
		return engine.Location{}, err
	case !known && h.state == "done" || known && h.state.Final() && h.state != forebay.StateDead && h.f["within"] == "1":
		return engine.Location{Where: engine.WhereDone, Queue: h.queue}, nil
	case !known || h.state.Final() && h.state != forebay.StateDead:
		return engine.Location{Where: engine.WhereUnknown}, nil
	}
	l := engine.Location{
		Where: engine.Where(h.state), Queue: h.queue, SentAt: atMillis(h.number("timestamp")), Attempts: h.failed(), Deliveries: h.deliveries(),
	}
	if h.state == forebay.StateDelayed {
		l.NotBefore = atMillis(h.due)
	}
	if h.state == forebay.StateDead {
		c := h.cause()
		l.Last, l.DeadSeq = &c, h.number("fbq")
	} else if fs := h.failures(h.f["fb"] != "" && h.isJob()); len(fs) > 0 {
		l.Last = &fs[len(fs)-1]
	}
	return l, nil
}

func noJob(id string) error { return fail(forebay.CodeNotFound, "there is no job %q", cut(id, 200)) }

// Job tells what is known of one; see engine.Jobs.
func (e *Engine) Job(ctx context.Context, id string) (forebay.Job, error) {
	if err := e.enter(); err != nil {
		return forebay.Job{}, err
	}
	defer e.leave()
	h, known, err := e.find(ctx, id)
	if err != nil {
		return forebay.Job{}, err
	}
	if !known || !h.isJob() {
		return forebay.Job{}, noJob(id)
	}
	return h.job(), nil
}

// Cancel ends jobs; see engine.Jobs.
func (e *Engine) Cancel(ctx context.Context, ids []string, reason string) ([]engine.CancelResult, error) {
	if err := tooMany("cancel", len(ids), engine.MaxCancel); err != nil {
		return nil, err
	}
	if err := engine.CheckText("reason", reason); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	args := []any{reason, len(ids)}
	for _, id := range ids {
		args = append(args, idArgs(id)...)
	}
	v, err := e.run(ctx, "cancel", args...)
	if err != nil {
		return nil, err
	}
	out := make([]engine.CancelResult, len(ids))
	for i, one := range v.out {
		switch text(one) {
		case "unknown":
			out[i].Err = noJob(ids[i])
		case "finished":
			out[i].Err = fail(forebay.CodeConflict, "job %q has finished", ids[i])
		default:
			out[i].State = forebay.State(text(one))
		}
	}
	return out, nil
}

func tooMany(what string, n, most int) error {
	if n > most {
		return fail(forebay.CodeInvalid, "%s of %d in one call; at most %d are allowed", what, n, most)
	}
	return nil
}

// Change changes jobs that wait; see engine.Jobs.
func (e *Engine) Change(ctx context.Context, changes []engine.JobChange) ([]error, error) {
	if err := tooMany("change", len(changes), engine.MaxCancel); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	args, of, errs, now := []any{0}, []int(nil), make([]error, len(changes)), e.now()
	for i := range changes {
		c := &changes[i]
		if errs[i] = engine.CheckChange(c, now); errs[i] != nil {
			continue
		}
		args, of = append(append(args, idArgs(c.ID)...), e.changeArgs(c)...), append(of, i)
	}
	args[0] = len(of)
	v, err := e.run(ctx, "change", args...)
	if err != nil {
		return nil, err
	}
	for n, i := range of {
		switch text(v.out[n]) {
		case "unknown":
			errs[i] = noJob(changes[i].ID)
		case "conflict":
			errs[i] = fail(forebay.CodeConflict, "job %q does not wait", changes[i].ID)
		case "group":
			errs[i] = fail(forebay.CodeInvalid, "job %q is of a group, whose order goes before priority", changes[i].ID)
		}
	}
	return errs, nil
}

func (e *Engine) changeArgs(c *engine.JobChange) []any {
	priority, due, payload, data, enc := -1, int64(-1), "", "", ""
	if c.Priority != nil {
		priority = bullPriority(*c.Priority)
	}
	if c.Due != nil {
		due = e.byServer(millis(*c.Due))
	}
	if c.Payload != nil {
		payload = "1"
		data, enc = storePayload(c.Payload)
	}
	return []any{priority, due, payload, data, enc}
}

// Progress notes what running jobs tell; see engine.Jobs.
func (e *Engine) Progress(ctx context.Context, updates []forebay.ProgressUpdate) ([]error, error) {
	if err := tooMany("progress", len(updates), engine.MaxProgress); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	args, of, errs, now := []any{0}, []int(nil), make([]error, len(updates)), e.now()
	for i := range updates {
		u := &updates[i]
		token, queue, id, ok := readReceipt(u.Receipt)
		if !ok {
			errs[i] = lost(u.Receipt)
			continue
		}
		if errs[i] = engine.CheckProgress(u); errs[i] != nil {
			continue
		}
		shown, kept := progressArgs(u.Progress, now)
		args, of = append(args, queue, id, token, shown, kept, len(u.Log)), append(of, i)
		for _, line := range u.Log {
			args = append(args, line.Text)
		}
	}
	args[0] = len(of)
	v, err := e.run(ctx, "progress", args...)
	if err != nil {
		return nil, err
	}
	for n, i := range of {
		errs[i] = kept(updates[i].Receipt, number(v.out[n]))
	}
	return errs, nil
}

// progressArgs are a progress as BullMQ shows it, and as we keep it.
func progressArgs(p *forebay.Progress, now time.Time) (shown, kept string) {
	if p == nil {
		return "", ""
	}
	k := keptProgress{Stage: p.Stage, Percent: p.Percent, Message: p.Message, Data: json.RawMessage(p.Data), At: p.At}
	if k.At.IsZero() {
		k.At = now
	}
	if p.Stage == "" && p.Message == "" && len(p.Data) == 0 {
		return encode(p.Percent), encode(k)
	}
	return encode(map[string]any{"percent": p.Percent, "stage": p.Stage, "message": p.Message, "data": k.Data}), encode(k)
}

// Remove drops finished jobs; see engine.Jobs.
func (e *Engine) Remove(ctx context.Context, ids []string) ([]error, error) {
	if err := tooMany("remove", len(ids), engine.MaxCancel); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	args, errs := []any{len(ids)}, make([]error, len(ids))
	for _, id := range ids {
		args = append(args, idArgs(id)...)
	}
	v, err := e.run(ctx, "remove", args...)
	if err != nil {
		return nil, err
	}
	for i, one := range v.out {
		switch text(one) {
		case "unknown":
			errs[i] = noJob(ids[i])
		case "conflict":
			errs[i] = fail(forebay.CodeConflict, "job %q has not finished", ids[i])
		}
	}
	return errs, nil
}
