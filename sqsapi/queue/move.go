package queue

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/forebayhq/forebay/engine"
)

// handleOfMove is what a task handle says.
type handleOfMove struct {
	Task   string `json:"taskId"`
	Source string `json:"sourceArn"`
}

func (s *Service) moveHandle(m *moveTask) string {
	text, _ := json.Marshal(handleOfMove{m.key, s.arn(m.Source)}) // two texts: it cannot fail
	return base64.StdEncoding.EncodeToString(text)
}

func notFound(parameter string) *Fault {
	return fault("ResourceNotFoundException", "The resource that you specified for the %s parameter doesn't exist.", parameter)
}

// byARN gives the queue that a parameter of a move names.
func (s *Service) byARN(ctx context.Context, arn, parameter string) (*queue, error) {
	name := s.ours(arn)
	if name == "" {
		return nil, notFound(parameter)
	}
	q, err := s.byName(ctx, name)
	if isShape(err, "QueueDoesNotExist") {
		return nil, notFound(parameter)
	}
	return q, err
}

// StartMessageMoveTask begins to move what a dead letter queue has. Run works it.
func (s *Service) StartMessageMoveTask(ctx context.Context, in StartMoveInput) (MoveHandle, error) {
	var none MoveHandle
	m, err := s.checkMove(ctx, &in)
	if err != nil {
		return none, err
	}
	s.starting.Lock() // so that two starts do not both see that none runs
	defer s.starting.Unlock()
	all, err := s.moves(ctx)
	if err != nil {
		return none, err
	}
	active := 0
	for i := range all {
		if all[i].active() {
			active++
			if all[i].Source == m.Source {
				return none, invalidValue("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
			}
		}
	}
	if active >= movesActive {
		return none, fault("OverLimit", "%d move tasks run; that is the most.", active)
	}
	stats, err := s.engine.Stats(ctx, m.Source)
	if err != nil {
		return none, s.failed(ctx, err)
	}
	m.ToMove = stats[0].Waiting
	if err := s.putMove(ctx, m); err != nil {
		return none, err
	}
	s.trimMoves(ctx, all, m.Source)
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
	return MoveHandle{TaskHandle: s.moveHandle(m)}, nil
}

// checkMove makes a task of what is asked for.
func (s *Service) checkMove(ctx context.Context, in *StartMoveInput) (*moveTask, error) {
	if in.SourceArn == "" {
		return nil, missing("SourceArn")
	}
	source, err := s.byARN(ctx, in.SourceArn, "SourceArn")
	if err != nil {
		return nil, err
	}
	now := s.cfg.Now()
	m := &moveTask{key: fmt.Sprintf("%s/%013d-%s", source.name, now.UnixMilli(), rand.Text()[:8])}
	m.moveRecord = moveRecord{Source: source.name, Life: source.Life, Started: now.UnixMilli(), Status: moveRunning}
	if n := in.MaxPerSecond; n != nil {
		if m.Rate = *n; m.Rate < 1 || m.Rate > s.limits.moves {
			return nil, badValue("MaxNumberOfMessagesPerSecond", m.Rate, "Must be between 1 and "+itoa(s.limits.moves)+", if provided.")
		}
	}
	from, err := s.sources(ctx, source.name)
	if err != nil {
		return nil, err
	}
	if len(from) == 0 {
		return nil, invalidValue("Source queue must be configured as a Dead Letter Queue.")
	}
	if in.DestinationArn == "" {
		return m, nil
	}
	to, err := s.byARN(ctx, in.DestinationArn, "DestinationArn")
	switch {
	case err != nil:
		return nil, err
	case to.name == source.name:
		return nil, badValue("DestinationArn", in.DestinationArn, "It is the source.")
	case to.fifo != source.fifo:
		return nil, badValue("DestinationArn", in.DestinationArn, "The destination must be of the same type as the source.")
	}
	m.To = to.name
	return m, nil
}

// trimMoves forgets the oldest ended tasks of a source.
func (s *Service) trimMoves(ctx context.Context, all []moveTask, source string) {
	mine := slices.DeleteFunc(all, func(m moveTask) bool { return m.Source != source || m.active() })
	for len(mine) >= movesKept { // they come oldest first
		// What is left behind is only not listed, and goes with the next one.
		_ = s.docs.DeleteDocument(ctx, moveDocs, mine[0].key, engine.AnyRev)
		mine = mine[1:]
	}
}

// ListMessageMoveTasks tells of the last tasks of a source, newest first.
func (s *Service) ListMessageMoveTasks(ctx context.Context, in ListMovesInput) (ListMovesOutput, error) {
	out := ListMovesOutput{Results: []MoveTask{}}
	if in.SourceArn == "" {
		return out, missing("SourceArn")
	}
	q, err := s.byARN(ctx, in.SourceArn, "SourceArn")
	if err != nil {
		return out, err
	}
	most := 1
	if n := in.MaxResults; n != nil {
		if most = *n; most < 1 || most > movesKept {
			return out, badValue("MaxResults", most, "Must be between 1 and "+itoa(movesKept)+", if provided.")
		}
	}
	all, err := s.moves(ctx)
	if err != nil {
		return out, err
	}
	for i := len(all) - 1; i >= 0 && len(out.Results) < most; i-- {
		if m := &all[i]; m.Source == q.name && m.Life == q.Life {
			out.Results = append(out.Results, s.shownMove(m))
		}
	}
	return out, nil
}

func (s *Service) shownMove(m *moveTask) MoveTask {
	t := MoveTask{Status: m.Status, SourceArn: s.arn(m.Source), MaxPerSecond: m.Rate, Moved: m.Moved,
		ToMove: &m.ToMove, FailureReason: m.Reason, Started: m.Started}
	if m.To != "" {
		t.DestinationArn = s.arn(m.To)
	}
	if m.Status == moveRunning {
		t.TaskHandle = s.moveHandle(m)
	}
	return t
}

// CancelMessageMoveTask ends a running task. What it has moved stays moved.
func (s *Service) CancelMessageMoveTask(ctx context.Context, in MoveHandle) (CancelMoveOutput, error) {
	var none CancelMoveOutput
	if in.TaskHandle == "" {
		return none, missing("TaskHandle")
	}
	var h handleOfMove
	raw, err := base64.StdEncoding.DecodeString(in.TaskHandle)
	if err != nil || json.Unmarshal(raw, &h) != nil || h.Task == "" || h.Source == "" {
		return none, invalidValue("Value for parameter TaskHandle is invalid.")
	}
	q, err := s.byARN(ctx, h.Source, "SourceArn")
	if err != nil {
		return none, err
	}
	m, err := s.changeMove(ctx, h.Task, func(m *moveTask) error {
		switch {
		case m.Source != q.name || m.Life != q.Life:
			return noTask()
		case m.Status != moveRunning:
			return invalidValue("Only a running task can be cancelled; this one is %s.", m.Status)
		}
		m.Status = moveCancelling
		return nil
	})
	if err != nil {
		return none, err
	}
	return CancelMoveOutput{Moved: m.Moved}, nil
}

func noTask() *Fault { return fault("ResourceNotFoundException", "Task does not exist.") }
