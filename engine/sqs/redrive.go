package sqs

import (
	"context"
	"errors"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// sourceOf gives the ARN of the queue that has a queue's dead letters, and its own.
func (e *Engine) sourceOf(ctx context.Context, name string) (q *queue, source, own string, err error) {
	if q, err = e.find(ctx, name); err != nil {
		return nil, "", "", err
	}
	a, err := e.attributes(ctx, q.url, types.QueueAttributeNameRedrivePolicy, types.QueueAttributeNameQueueArn)
	if err != nil {
		return nil, "", "", err
	}
	if source = parsePolicy(a).Target; source == "" {
		return nil, "", "", unsupported("", "queue %q of SQS has no redrive policy, so it keeps no dead letters", name)
	}
	return q, source, a[string(types.QueueAttributeNameQueueArn)], nil
}

// alone tells whether the dead letters of a queue are the only ones where they are.
func (e *Engine) alone(ctx context.Context, q *queue) (bool, error) {
	url, err := e.deadLetters(ctx, q)
	if err != nil {
		return false, err
	}
	out, err := e.client.ListDeadLetterSourceQueues(ctx, &awssqs.ListDeadLetterSourceQueuesInput{QueueUrl: &url})
	if err != nil {
		return false, fail("redrive", err)
	}
	return len(out.QueueUrls) <= 1, nil
}

// Redrive starts a move task. Messages get new ids of SQS; ours are theirs still. SQS
// knows where a dead letter came from only if it has moved it itself, and fails at one
// that Settle has put there. So the queue is named as the destination, unless others
// have their dead letters in the same place.
func (e *Engine) Redrive(ctx context.Context, queue string, rate int) (string, error) {
	const most = 500
	if rate < 0 || rate > most {
		return "", forebay.Errorf(forebay.CodeInvalid, "sqs: redrive", "%d messages a second; 0 (as fast as SQS likes) to %d are allowed", rate, most)
	}
	call, leave, err := e.enter(ctx, e.closing)
	if err != nil {
		return "", err
	}
	defer leave()
	q, arn, own, err := e.sourceOf(call, queue)
	if err != nil {
		return "", err
	}
	in := &awssqs.StartMessageMoveTaskInput{SourceArn: &arn}
	alone, err := e.alone(call, q)
	if err != nil {
		return "", err
	}
	if alone {
		in.DestinationArn = &own
	}
	if rate > 0 {
		in.MaxNumberOfMessagesPerSecond = new(int32(rate))
	}
	out, err := e.client.StartMessageMoveTask(call, in)
	if err != nil {
		return "", e.notStarted(call, arn, err)
	}
	return deref(out.TaskHandle), nil
}

// notStarted finds out whether another task is why: SQS says only that a parameter is
// wrong.
func (e *Engine) notStarted(ctx context.Context, arn string, cause error) error {
	err := fail("redrive", cause)
	if forebay.CodeOf(err) != forebay.CodeInvalid {
		return err
	}
	tasks, listed := e.tasks(ctx, arn)
	if listed == nil && len(tasks) > 0 && tasks[0].State == engine.RedriveRunning {
		return forebay.Errorf(forebay.CodeConflict, "sqs: redrive", "a task is running already: %w", cause)
	}
	return err
}

// Redrives tells of the last ten tasks.
func (e *Engine) Redrives(ctx context.Context, queue string) ([]engine.RedriveTask, error) {
	call, leave, err := e.enter(ctx, e.closing)
	if err != nil {
		return nil, err
	}
	defer leave()
	_, arn, _, err := e.sourceOf(call, queue)
	if err != nil {
		return nil, err
	}
	return e.tasks(call, arn)
}

func (e *Engine) tasks(ctx context.Context, arn string) ([]engine.RedriveTask, error) {
	out, err := e.client.ListMessageMoveTasks(ctx, &awssqs.ListMessageMoveTasksInput{SourceArn: &arn, MaxResults: new(int32(maxBatch))})
	if err != nil {
		return nil, fail("redrives", err)
	}
	tasks := make([]engine.RedriveTask, len(out.Results))
	for i, r := range out.Results {
		tasks[i] = engine.RedriveTask{
			Task: deref(r.TaskHandle), State: redriveStates[deref(r.Status)], Moved: r.ApproximateNumberOfMessagesMoved,
			ToMove: deref(r.ApproximateNumberOfMessagesToMove), Rate: int(deref(r.MaxNumberOfMessagesPerSecond)),
			Started: time.UnixMilli(r.StartedTimestamp), Reason: deref(r.FailureReason),
		}
	}
	return tasks, nil
}

var redriveStates = map[string]engine.RedriveState{
	"RUNNING": engine.RedriveRunning, "COMPLETED": engine.RedriveCompleted, "CANCELLING": engine.RedriveCancelling,
	"CANCELLED": engine.RedriveCancelled, "FAILED": engine.RedriveFailed,
}

// CancelRedrive ends a task. SQS knows it by its handle alone.
func (e *Engine) CancelRedrive(ctx context.Context, _, task string) (int64, error) {
	call, leave, err := e.enter(ctx, e.closing)
	if err != nil {
		return 0, err
	}
	defer leave()
	out, err := e.client.CancelMessageMoveTask(call, &awssqs.CancelMessageMoveTaskInput{TaskHandle: &task})
	var none *types.ResourceNotFoundException
	switch {
	case errors.As(err, &none):
		return 0, forebay.Errorf(forebay.CodeNotFound, "sqs: cancel redrive", "no such task runs")
	case err != nil:
		return 0, fail("cancel redrive", err)
	}
	return out.ApproximateNumberOfMessagesMoved, nil
}
