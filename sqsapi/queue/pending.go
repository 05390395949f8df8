package queue

import "context"

// DeleteQueue is not there yet.
func (s *Service) DeleteQueue(ctx context.Context, in NamedInput) error {
	return pending()
}

// ListQueues is not there yet.
func (s *Service) ListQueues(ctx context.Context, in ListQueuesInput) (ListQueuesOutput, error) {
	return ListQueuesOutput{}, pending()
}

// ListDeadLetterSourceQueues is not there yet.
func (s *Service) ListDeadLetterSourceQueues(ctx context.Context, in ListSourcesInput) (ListSourcesOutput, error) {
	return ListSourcesOutput{}, pending()
}

// PurgeQueue is not there yet.
func (s *Service) PurgeQueue(ctx context.Context, in NamedInput) error {
	return pending()
}

// AddPermission is not there yet.
func (s *Service) AddPermission(ctx context.Context, in AddPermissionInput) error {
	return pending()
}

// RemovePermission is not there yet.
func (s *Service) RemovePermission(ctx context.Context, in RemovePermissionInput) error {
	return pending()
}

// StartMessageMoveTask is not there yet.
func (s *Service) StartMessageMoveTask(ctx context.Context, in StartMoveInput) (MoveHandle, error) {
	return MoveHandle{}, pending()
}

// ListMessageMoveTasks is not there yet.
func (s *Service) ListMessageMoveTasks(ctx context.Context, in ListMovesInput) (ListMovesOutput, error) {
	return ListMovesOutput{}, pending()
}

// CancelMessageMoveTask is not there yet.
func (s *Service) CancelMessageMoveTask(ctx context.Context, in MoveHandle) (CancelMoveOutput, error) {
	return CancelMoveOutput{}, pending()
}

func pending() *Fault { return fault("UnsupportedOperation", "The action is not supported yet.") }
