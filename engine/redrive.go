package engine

import (
	"context"
	"time"
)

// Redriver is the ability of engines whose store moves dead letters by itself to give
// them back to where they came from, in the background.
type Redriver interface {
	// Redrive begins to move the dead letters of a queue, at most rate a second (0: as
	// fast as the store likes), and gives the name of the task. CodeConflict: one is
	// running already; CodeUnsupported: the queue keeps no dead letters.
	Redrive(ctx context.Context, queue string, rate int) (task string, err error)

	// Redrives tells of the last tasks of a queue, newest first.
	Redrives(ctx context.Context, queue string) ([]RedriveTask, error)

	// CancelRedrive ends a running task; what it has moved stays moved. CodeNotFound:
	// no such task runs.
	CancelRedrive(ctx context.Context, queue, task string) (moved int64, err error)
}

// RedriveState is how far a task is.
type RedriveState string

const (
	RedriveRunning    RedriveState = "running"
	RedriveCompleted  RedriveState = "completed"
	RedriveCancelling RedriveState = "cancelling"
	RedriveCancelled  RedriveState = "cancelled"
	RedriveFailed     RedriveState = "failed"
)

// RedriveTask tells of one task.
type RedriveTask struct {
	Task    string       `json:"task,omitempty"` // to cancel it; empty once it has ended
	State   RedriveState `json:"state"`
	Moved   int64        `json:"moved"`
	ToMove  int64        `json:"toMove,omitempty"` // counted when it began; 0: not known
	Rate    int          `json:"rate,omitempty"`   // at most a second; 0: no bound
	Started time.Time    `json:"started"`
	Reason  string       `json:"reason,omitempty"` // why it failed
}

// HeaderReplayed is in a message that is sent again on purpose, under its own id, with
// another value each time. Engines whose store joins messages by id, and cannot be told
// to forget one (FIFO queues of SQS), must not take it for a duplicate.
const HeaderReplayed = "forebay-replayed"
