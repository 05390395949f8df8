package sealed

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// jobs seals for a ledger.
type jobs struct {
	e  *Engine
	in engine.Jobs
}

func (j *jobs) Cancel(ctx context.Context, ids []string, reason string) ([]engine.CancelResult, error) {
	return j.in.Cancel(ctx, ids, reason)
}

func (j *jobs) Remove(ctx context.Context, ids []string) ([]error, error) {
	return j.in.Remove(ctx, ids)
}

func (j *jobs) Job(ctx context.Context, id string) (forebay.Job, error) {
	one, err := j.in.Job(ctx, id)
	if err == nil {
		err = j.e.openJob(ctx, &one)
	}
	return one, err
}

// openJob opens what is known of a job. What does not open stays as it is.
func (e *Engine) openJob(ctx context.Context, j *forebay.Job) error {
	s, p := e.sealer, place{queue: j.Queue, id: j.ID}
	err := unless(e.openMessage(ctx, &j.Message))
	j.Failures = s.openCauses(ctx, p, j.Failures)
	s.openCause(ctx, p, &j.Cause)
	s.openProgress(ctx, p, &j.Progress)
	p.what = isResult
	j.Result = s.openValue(ctx, p, j.Result)
	return err
}

// Change seals payloads: for which queue the ledger says.
func (j *jobs) Change(ctx context.Context, changes []engine.JobChange) ([]error, error) {
	if len(changes) > engine.MaxSend {
		return j.in.Change(ctx, changes) // which refuses
	}
	out := make([]engine.JobChange, 0, len(changes))
	errs := make([]error, len(changes))
	for i := range changes {
		c := changes[i]
		if c.Payload != nil && j.e.sealer.seals() {
			c.Payload, errs[i] = j.changed(ctx, c.ID, c.Payload)
		}
		if errs[i] == nil {
			out = append(out, c)
		}
	}
	told, err := j.in.Change(ctx, out)
	if err != nil {
		return nil, err
	}
	for i := range errs {
		if errs[i] == nil {
			errs[i], told = told[0], told[1:]
		}
	}
	return errs, nil
}

func (j *jobs) changed(ctx context.Context, id string, payload []byte) ([]byte, error) {
	one, err := j.in.Job(ctx, id)
	switch forebay.CodeOf(err) {
	case "":
		return j.e.payload(placeOf(&one.Message), payload)
	case forebay.CodeNotFound, forebay.CodeInvalid:
		return payload, nil // the engine behind says so
	}
	return nil, err
}

// Progress seals messages, data and lines.
func (j *jobs) Progress(ctx context.Context, updates []forebay.ProgressUpdate) ([]error, error) {
	if len(updates) > engine.MaxProgress {
		return j.in.Progress(ctx, updates) // which refuses
	}
	out := make([]forebay.ProgressUpdate, 0, len(updates))
	errs := make([]error, len(updates))
	for i := range updates {
		u := updates[i]
		var p place
		u.Receipt, p = j.e.sealer.bare(u.Receipt)
		if p.bound != flagUnbound && j.e.seals(p.queue) && engine.CheckProgress(&u) == nil {
			errs[i] = j.e.update(p, &u)
		}
		if errs[i] == nil {
			out = append(out, u)
		}
	}
	told, err := j.in.Progress(ctx, out)
	if err != nil {
		return nil, err
	}
	for i := range errs {
		if errs[i] == nil {
			errs[i], told = told[0], told[1:]
		}
	}
	return errs, nil
}

func (e *Engine) update(p place, u *forebay.ProgressUpdate) error {
	if u.Progress != nil {
		if u.Progress = e.sealer.progress(p, *u.Progress); u.Progress == nil {
			err := forebay.Errorf(forebay.CodeTooLarge, "", "the data cannot be compressed; with encryption about three quarters of %d bytes are allowed", forebay.MaxProgressBytes)
			err.Field = "data"
			return err
		}
	}
	lines := make([]forebay.LogLine, len(u.Log))
	for i, line := range u.Log {
		lines[i] = forebay.LogLine{At: line.At, Text: e.sealer.line(p, line.Text)}
	}
	u.Log = lines
	return nil
}

// cutLine is how much of a line is kept that does not fit, however it is compressed.
const cutLine = 2900

func (s *sealer) line(p place, text string) string {
	p.what = isLog
	if out := s.text(p, []byte(text), forebay.MaxLogBytes); out != "" {
		return out
	}
	return s.text(p, []byte(text[:cutLine]+"…"), forebay.MaxLogBytes)
}

// history opens what happened.
type history struct {
	e  *Engine
	in engine.History
}

func (h *history) History(ctx context.Context, q engine.HistoryQuery) (engine.HistoryPage, error) {
	page, err := h.in.History(ctx, q)
	if err != nil || len(page.Events) == 0 {
		return page, err
	}
	events := append([]forebay.HistoryEvent(nil), page.Events...)
	for i := range events {
		h.open(ctx, &events[i])
	}
	page.Events = events
	return page, nil
}

func (h *history) open(ctx context.Context, v *forebay.HistoryEvent) {
	s, p := h.e.sealer, place{queue: v.Queue, id: v.Job}
	if v.Cause != nil {
		c := *v.Cause
		s.openCause(ctx, p, &c)
		v.Cause = &c
	}
	if v.Progress != nil {
		g := *v.Progress
		s.openProgress(ctx, p, &g)
		v.Progress = &g
	}
	p.what = isResult
	v.Result = s.openValue(ctx, p, v.Result)
	p.what = isLog
	if plain, was, err := s.openText(ctx, p, v.Text); err != nil {
		v.Text = cannotOpen
	} else if !was {
		v.Text = string(plain)
	}
}
