package flow

import (
	"bytes"
)

// act does what the step is for.
func (t *turn) act(v *vertex, s *StepRun, vars map[string]any) error {
	switch v.Kind {
	case KindParallel, KindJoin:
		t.complete(v, s, nil, 0)
		return nil
	case KindBranch:
		return t.choose(v, s, vars)
	}
	if v.ForEach != nil {
		return t.beginEach(v, s, vars)
	}
	send, err := t.sending(v, s, NoItem, vars)
	if err != nil {
		return err
	}
	t.Send = append(t.Send, send)
	s.State = StepSent
	if v.Kind == KindEmit {
		t.complete(v, s, nil, 0)
	}
	return nil
}

func (t *turn) choose(v *vertex, s *StepRun, vars map[string]any) error {
	for i, one := range v.Cases {
		if when := v.cases[i]; when != nil {
			if holds, err := when.bool(vars); err != nil {
				return err
			} else if !holds {
				continue
			}
		}
		s.To = one.To
		break
	}
	var out bytes.Buffer
	writeJSON(&out, map[string]any{"to": append([]string{}, s.To...)})
	t.complete(v, s, out.Bytes(), 0)
	return nil
}

// sending makes the job of a step, or of one of its items.
func (t *turn) sending(v *vertex, s *StepRun, item int, vars map[string]any) (Send, error) {
	m := Send{
		ID: JobID(t.r.ID, v.ID, s.Round, item, false), Step: v.ID, Round: s.Round, Item: item,
		Kind: v.Kind, Policy: v.Policy, Reason: v.Reason,
	}
	var err error
	with := v.with
	switch v.Kind {
	case KindJob:
		m.Use = v.Use
	case KindFlow:
		m.Use, m.Version = v.Flow.Name, v.Flow.Version
	case KindEmit:
		m.Use, with = v.Emit.Type, v.data
	case KindWait:
		m.Delay = v.Wait.Timeout
	case KindDelay:
		m.Delay = v.Delay.For
		if v.until != nil {
			if m.Until, err = v.until.time(vars); err != nil {
				return m, err
			}
		}
	}
	switch {
	case s.Payload != nil:
		m.Payload = s.Payload
	case with != nil:
		m.Payload, err = with.fill(vars)
	case v.Kind != KindDelay && v.Kind != KindWait:
		m.Payload = t.context(t.p.ids(v.ancestors))
	}
	if err == nil {
		m.Group, err = v.group.string(vars)
	}
	if err == nil {
		m.LimitKey, err = v.limit.string(vars)
	}
	return m, err
}
