package flow

import (
	"bytes"
	"fmt"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// beginEach counts the items and sends the first of them.
func (t *turn) beginEach(v *vertex, s *StepRun, vars map[string]any) error {
	_, total, err := items(v, vars)
	if err != nil {
		return err
	}
	s.Each = &EachRun{Total: total}
	s.State = StepSent
	t.nextItems(v, s)
	return nil
}

// items are the list of a for_each, or nil, and how many there are.
func items(v *vertex, vars map[string]any) (list traits.Lister, total int, err error) {
	val, err := v.over.eval(vars)
	if err != nil {
		return nil, 0, err
	}
	switch val := val.(type) {
	case types.Int:
		total = int(val)
	case traits.Lister:
		size, ok := val.Size().(types.Int)
		if !ok {
			return nil, 0, fmt.Errorf("%s gives a list without a size", v.ForEach.In)
		}
		list, total = val, int(size)
	default:
		return nil, 0, fmt.Errorf("%s gives %s; a list or a number is wanted", v.ForEach.In, val.Type().TypeName())
	}
	if total < 0 || total > MaxItems {
		return nil, 0, fmt.Errorf("%s gives %d items; 0 to %d are allowed", v.ForEach.In, total, MaxItems)
	}
	return list, total, nil
}

// nextItems sends items where there is room, half of it at a time, so that a long
// list is not read for each; and ends the step when there are none left.
func (t *turn) nextItems(v *vertex, s *StepRun) bool {
	e := s.Each
	over := e.Stop != nil || e.Failed > v.ForEach.Failures || t.r.State != RunRunning
	switch open := e.InFlight(); {
	case open == 0 && (over || e.Next == e.Total):
		t.endEach(v, s)
		return true
	case over || e.Next == e.Total || t.r.Paused || open > v.ForEach.InFlight/2:
		return false
	}
	if err := t.sendItems(v, s); err != nil {
		e.Stop = &Failure{Code: FailExpression, Message: t.explained(t.p.ids(v.ancestors), err).Error()}
	}
	return true
}

func (t *turn) sendItems(v *vertex, s *StepRun) error {
	e := s.Each
	vars, err := t.vars(t.p.ids(v.ancestors))
	if err != nil {
		return err
	}
	list, total, err := items(v, vars)
	if err != nil {
		return err
	}
	if total < e.Total {
		return fmt.Errorf("%s gave %d items, and now %d", v.ForEach.In, e.Total, total)
	}
	for e.Next < e.Total && e.InFlight() < v.ForEach.InFlight {
		send, err := t.item(v, s, list, e.Next, vars, types.Int(e.Next))
		if err != nil {
			return err
		}
		t.Send = append(t.Send, send)
		e.Next++
	}
	return nil
}

// item makes the job of one item. Without with the item is its payload.
func (t *turn) item(v *vertex, s *StepRun, list traits.Lister, n int, vars map[string]any, item ref.Val) (Send, error) {
	if list != nil {
		item = list.Get(item)
	}
	vars["item"], vars["index"] = item, int64(n)
	send, err := t.sending(v, s, n, vars)
	if err == nil && v.with == nil && s.Payload == nil {
		var b bytes.Buffer
		err = encode(&b, item)
		send.Payload = b.Bytes()
	}
	if err != nil {
		return Send{}, fmt.Errorf("item %d: %w", n, err)
	}
	return send, nil
}

func (t *turn) bookItem(v *vertex, s *StepRun, e Event) {
	if s.State != StepSent || !s.Each.end(e.Item) {
		return
	}
	if e.Type == EventCompleted {
		s.Each.Done++
		return
	}
	s.Each.Failed++
	if s.Each.First == nil && e.Error != nil {
		s.Each.First = e.Error
	}
}

func (t *turn) endEach(v *vertex, s *StepRun) {
	e := s.Each
	short := e.Stop != nil || e.Failed > v.ForEach.Failures || e.Next < e.Total
	switch {
	case !short:
		var b bytes.Buffer
		writeJSON(&b, map[string]int{"count": e.Total, "completed": e.Done, "failed": e.Failed})
		t.complete(v, s, b.Bytes(), 0)
	case t.r.State != RunRunning:
		s.State, s.Error = StepCancelled, t.r.Failure
	case e.Stop != nil:
		t.failed(v, s, v.OnFailure, e.Stop)
	default:
		why := &Failure{Code: FailItems, Message: fmt.Sprintf("%d of %d items failed; %d may", e.Failed, e.Total, v.ForEach.Failures)}
		if e.First != nil {
			why.Message += ". The first: " + e.First.Message
		}
		t.failed(v, s, v.OnFailure, why)
	}
}
