package queue

// The shapes of the 23 actions, as the service model of SQS names them
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/). The JSON
// protocol uses them as they are; the Query protocol maps to them.
//
// A pointer is a field whose absence means something else than its zero.

// CreateQueueInput is the question of CreateQueue.
type CreateQueueInput struct {
	QueueName  string            `json:"QueueName"`
	Attributes map[string]string `json:"Attributes"`
	Tags       map[string]string `json:"tags"` // lower case in the model
}

// NamedInput is the question of the actions that take nothing but a queue:
// DeleteQueue, PurgeQueue, ListQueueTags.
type NamedInput struct {
	QueueUrl string `json:"QueueUrl"`
}

// GetQueueUrlInput is the question of GetQueueUrl.
type GetQueueUrlInput struct {
	QueueName              string `json:"QueueName"`
	QueueOwnerAWSAccountId string `json:"QueueOwnerAWSAccountId"`
}

// ListQueuesInput is the question of ListQueues.
type ListQueuesInput struct {
	QueueNamePrefix string `json:"QueueNamePrefix"`
	MaxResults      *int   `json:"MaxResults"`
	NextToken       string `json:"NextToken"`
}

// ListSourcesInput is the question of ListDeadLetterSourceQueues.
type ListSourcesInput struct {
	QueueUrl   string `json:"QueueUrl"`
	MaxResults *int   `json:"MaxResults"`
	NextToken  string `json:"NextToken"`
}

// GetAttributesInput is the question of GetQueueAttributes.
type GetAttributesInput struct {
	QueueUrl       string   `json:"QueueUrl"`
	AttributeNames []string `json:"AttributeNames"`
}

// SetAttributesInput is the question of SetQueueAttributes.
type SetAttributesInput struct {
	QueueUrl   string            `json:"QueueUrl"`
	Attributes map[string]string `json:"Attributes"`
}

// TagInput is the question of TagQueue.
type TagInput struct {
	QueueUrl string            `json:"QueueUrl"`
	Tags     map[string]string `json:"Tags"`
}

// UntagInput is the question of UntagQueue.
type UntagInput struct {
	QueueUrl string   `json:"QueueUrl"`
	TagKeys  []string `json:"TagKeys"`
}

// AddPermissionInput is the question of AddPermission.
type AddPermissionInput struct {
	QueueUrl      string   `json:"QueueUrl"`
	Label         string   `json:"Label"`
	AWSAccountIds []string `json:"AWSAccountIds"`
	Actions       []string `json:"Actions"`
}

// RemovePermissionInput is the question of RemovePermission.
type RemovePermissionInput struct {
	QueueUrl string `json:"QueueUrl"`
	Label    string `json:"Label"`
}

// Attribute is a message attribute, or a system attribute of a sending.
type Attribute struct {
	DataType         string   `json:"DataType"`
	StringValue      *string  `json:"StringValue,omitempty"`
	BinaryValue      []byte   `json:"BinaryValue,omitempty"` // base64 on the wire
	StringListValues []string `json:"StringListValues,omitempty"`
	BinaryListValues [][]byte `json:"BinaryListValues,omitempty"`
}

// SendInput is the question of SendMessage, and what the entries of SendMessageBatch say.
type SendInput struct {
	QueueUrl               string               `json:"QueueUrl"`
	ID                     string               `json:"Id"` // of an entry
	MessageBody            string               `json:"MessageBody"`
	DelaySeconds           *int                 `json:"DelaySeconds"`
	MessageAttributes      map[string]Attribute `json:"MessageAttributes"`
	SystemAttributes       map[string]Attribute `json:"MessageSystemAttributes"`
	MessageDeduplicationId *string              `json:"MessageDeduplicationId"`
	MessageGroupId         *string              `json:"MessageGroupId"`
}

// SendBatchInput is the question of SendMessageBatch.
type SendBatchInput struct {
	QueueUrl string      `json:"QueueUrl"`
	Entries  []SendInput `json:"Entries"`
}

// ReceiveInput is the question of ReceiveMessage.
type ReceiveInput struct {
	QueueUrl                string   `json:"QueueUrl"`
	MaxNumberOfMessages     *int     `json:"MaxNumberOfMessages"`
	WaitTimeSeconds         *int     `json:"WaitTimeSeconds"`
	VisibilityTimeout       *int     `json:"VisibilityTimeout"`
	AttributeNames          []string `json:"AttributeNames"` // the older name of the next
	SystemAttributeNames    []string `json:"MessageSystemAttributeNames"`
	MessageAttributeNames   []string `json:"MessageAttributeNames"`
	ReceiveRequestAttemptId string   `json:"ReceiveRequestAttemptId"`
}

// HandleInput is the question of DeleteMessage and ChangeMessageVisibility, and what
// the entries of their batches say.
type HandleInput struct {
	QueueUrl          string `json:"QueueUrl"`
	ID                string `json:"Id"` // of an entry
	ReceiptHandle     string `json:"ReceiptHandle"`
	VisibilityTimeout *int   `json:"VisibilityTimeout"`
}

// HandleBatchInput is the question of DeleteMessageBatch and ChangeMessageVisibilityBatch.
type HandleBatchInput struct {
	QueueUrl string        `json:"QueueUrl"`
	Entries  []HandleInput `json:"Entries"`
}

// StartMoveInput is the question of StartMessageMoveTask.
type StartMoveInput struct {
	SourceArn      string `json:"SourceArn"`
	DestinationArn string `json:"DestinationArn"`
	MaxPerSecond   *int   `json:"MaxNumberOfMessagesPerSecond"`
}

// ListMovesInput is the question of ListMessageMoveTasks.
type ListMovesInput struct {
	SourceArn  string `json:"SourceArn"`
	MaxResults *int   `json:"MaxResults"`
}

// MoveHandle is the question of CancelMessageMoveTask and the answer of StartMessageMoveTask.
type MoveHandle struct {
	TaskHandle string `json:"TaskHandle"`
}

// QueueUrlOutput is the answer of CreateQueue and GetQueueUrl. URL is a queue's name
// until the front has made it reachable for its caller.
type QueueUrlOutput struct {
	QueueUrl string `json:"QueueUrl"`
}

// ListQueuesOutput is the answer of ListQueues.
type ListQueuesOutput struct {
	QueueUrls []string `json:"QueueUrls,omitempty"`
	NextToken string   `json:"NextToken,omitempty"`
}

// ListSourcesOutput is the answer of ListDeadLetterSourceQueues; its list is lower
// case in the model.
type ListSourcesOutput struct {
	QueueUrls []string `json:"queueUrls"`
	NextToken string   `json:"NextToken,omitempty"`
}

// AttributesOutput is the answer of GetQueueAttributes.
type AttributesOutput struct {
	Attributes map[string]string `json:"Attributes,omitempty"`
}

// TagsOutput is the answer of ListQueueTags.
type TagsOutput struct {
	Tags map[string]string `json:"Tags,omitempty"`
}

// SendOutput is the answer of SendMessage, and of an entry of SendMessageBatch.
type SendOutput struct {
	ID              string `json:"Id,omitempty"`
	MessageId       string `json:"MessageId"`
	MD5OfBody       string `json:"MD5OfMessageBody"`
	MD5OfAttributes string `json:"MD5OfMessageAttributes,omitempty"`
	MD5OfSystem     string `json:"MD5OfMessageSystemAttributes,omitempty"`
	SequenceNumber  string `json:"SequenceNumber,omitempty"`
}

// Done is an entry of a batch of handles that was done.
type Done struct {
	ID string `json:"Id"`
}

// Failed is an entry of a batch that was not done.
type Failed struct {
	ID          string `json:"Id"`
	SenderFault bool   `json:"SenderFault"`
	Code        string `json:"Code"`
	Message     string `json:"Message,omitempty"`
}

// SendBatchOutput is the answer of SendMessageBatch.
type SendBatchOutput struct {
	Successful []SendOutput `json:"Successful,omitempty"`
	Failed     []Failed     `json:"Failed,omitempty"`
}

// HandleBatchOutput is the answer of DeleteMessageBatch and ChangeMessageVisibilityBatch.
type HandleBatchOutput struct {
	Successful []Done   `json:"Successful,omitempty"`
	Failed     []Failed `json:"Failed,omitempty"`
}

// Message is a message as ReceiveMessage gives it.
type Message struct {
	MessageId         string               `json:"MessageId"`
	ReceiptHandle     string               `json:"ReceiptHandle"`
	MD5OfBody         string               `json:"MD5OfBody"`
	Body              string               `json:"Body"`
	Attributes        map[string]string    `json:"Attributes,omitempty"`
	MD5OfAttributes   string               `json:"MD5OfMessageAttributes,omitempty"`
	MessageAttributes map[string]Attribute `json:"MessageAttributes,omitempty"`
}

// ReceiveOutput is the answer of ReceiveMessage.
type ReceiveOutput struct {
	Messages []Message `json:"Messages,omitempty"`
}

// ListMovesOutput is the answer of ListMessageMoveTasks.
type ListMovesOutput struct {
	Results []MoveTask `json:"Results"`
}

// MoveTask tells of one move task.
type MoveTask struct {
	TaskHandle     string `json:"TaskHandle,omitempty"` // only while it runs
	Status         string `json:"Status"`
	SourceArn      string `json:"SourceArn"`
	DestinationArn string `json:"DestinationArn,omitempty"`
	MaxPerSecond   int    `json:"MaxNumberOfMessagesPerSecond,omitempty"`
	Moved          int64  `json:"ApproximateNumberOfMessagesMoved"`
	ToMove         *int64 `json:"ApproximateNumberOfMessagesToMove,omitempty"`
	FailureReason  string `json:"FailureReason,omitempty"`
	Started        int64  `json:"StartedTimestamp"` // ms since 1970
}

// CancelMoveOutput is the answer of CancelMessageMoveTask.
type CancelMoveOutput struct {
	Moved int64 `json:"ApproximateNumberOfMessagesMoved"`
}
