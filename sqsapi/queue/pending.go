package queue

import "context"

// CreateQueue is not there yet.
func (s *Service) CreateQueue(ctx context.Context, in CreateQueueInput) (QueueUrlOutput, error) {
	return QueueUrlOutput{}, pending()
}

// DeleteQueue is not there yet.
func (s *Service) DeleteQueue(ctx context.Context, in NamedInput) error {
	return pending()
}

// GetQueueUrl is not there yet.
func (s *Service) GetQueueUrl(ctx context.Context, in GetQueueUrlInput) (QueueUrlOutput, error) {
	return QueueUrlOutput{}, pending()
}

// ListQueues is not there yet.
func (s *Service) ListQueues(ctx context.Context, in ListQueuesInput) (ListQueuesOutput, error) {
	return ListQueuesOutput{}, pending()
}

// ListDeadLetterSourceQueues is not there yet.
func (s *Service) ListDeadLetterSourceQueues(ctx context.Context, in ListSourcesInput) (ListSourcesOutput, error) {
	return ListSourcesOutput{}, pending()
}

// GetQueueAttributes is not there yet.
func (s *Service) GetQueueAttributes(ctx context.Context, in GetAttributesInput) (AttributesOutput, error) {
	return AttributesOutput{}, pending()
}

// SetQueueAttributes is not there yet.
func (s *Service) SetQueueAttributes(ctx context.Context, in SetAttributesInput) error {
	return pending()
}

// PurgeQueue is not there yet.
func (s *Service) PurgeQueue(ctx context.Context, in NamedInput) error {
	return pending()
}

// TagQueue is not there yet.
func (s *Service) TagQueue(ctx context.Context, in TagInput) error {
	return pending()
}

// UntagQueue is not there yet.
func (s *Service) UntagQueue(ctx context.Context, in UntagInput) error {
	return pending()
}

// ListQueueTags is not there yet.
func (s *Service) ListQueueTags(ctx context.Context, in NamedInput) (TagsOutput, error) {
	return TagsOutput{}, pending()
}

// AddPermission is not there yet.
func (s *Service) AddPermission(ctx context.Context, in AddPermissionInput) error {
	return pending()
}

// RemovePermission is not there yet.
func (s *Service) RemovePermission(ctx context.Context, in RemovePermissionInput) error {
	return pending()
}

// SendMessage is not there yet.
func (s *Service) SendMessage(ctx context.Context, in SendInput) (SendOutput, error) {
	return SendOutput{}, pending()
}

// SendMessageBatch is not there yet.
func (s *Service) SendMessageBatch(ctx context.Context, in SendBatchInput) (SendBatchOutput, error) {
	return SendBatchOutput{}, pending()
}

// ReceiveMessage is not there yet.
func (s *Service) ReceiveMessage(ctx context.Context, in ReceiveInput) (ReceiveOutput, error) {
	return ReceiveOutput{}, pending()
}

// DeleteMessage is not there yet.
func (s *Service) DeleteMessage(ctx context.Context, in HandleInput) error {
	return pending()
}

// DeleteMessageBatch is not there yet.
func (s *Service) DeleteMessageBatch(ctx context.Context, in HandleBatchInput) (HandleBatchOutput, error) {
	return HandleBatchOutput{}, pending()
}

// ChangeMessageVisibility is not there yet.
func (s *Service) ChangeMessageVisibility(ctx context.Context, in HandleInput) error {
	return pending()
}

// ChangeMessageVisibilityBatch is not there yet.
func (s *Service) ChangeMessageVisibilityBatch(ctx context.Context, in HandleBatchInput) (HandleBatchOutput, error) {
	return HandleBatchOutput{}, pending()
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
