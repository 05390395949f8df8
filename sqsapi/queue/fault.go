package queue

import (
	"errors"
	"fmt"
)

// Fault is an answer that refuses, as the service model knows it.
type Fault struct {
	Shape   string // name of the error's shape, as JSON clients know it: QueueDoesNotExist
	Message string
}

func (f *Fault) Error() string { return f.Shape + ": " + f.Message }

func fault(shape, format string, args ...any) *Fault {
	return &Fault{Shape: shape, Message: fmt.Sprintf(format, args...)}
}

func isShape(err error, shape string) bool {
	var f *Fault
	return errors.As(err, &f) && f.Shape == shape
}

// Describe is what the protocols need of a shape: the code that Query clients know,
// the HTTP status, and whether the sender is at fault.
func (f *Fault) Describe() (code string, status int, sender bool) {
	d, known := faults[f.Shape]
	if !known {
		return f.Shape, 400, true
	}
	return d.code, d.status, d.status < 500
}

const simple = "AWS.SimpleQueueService."

// faults differ from {the shape's own name, 400} where they are listed.
var faults = map[string]struct {
	code   string
	status int
}{
	"QueueDoesNotExist":                 {simple + "NonExistentQueue", 400},
	"QueueNameExists":                   {"QueueAlreadyExists", 400},
	"QueueDeletedRecently":              {simple + "QueueDeletedRecently", 400},
	"PurgeQueueInProgress":              {simple + "PurgeQueueInProgress", 403},
	"BatchEntryIdsNotDistinct":          {simple + "BatchEntryIdsNotDistinct", 400},
	"BatchRequestTooLong":               {simple + "BatchRequestTooLong", 400},
	"EmptyBatchRequest":                 {simple + "EmptyBatchRequest", 400},
	"InvalidBatchEntryId":               {simple + "InvalidBatchEntryId", 400},
	"TooManyEntriesInBatchRequest":      {simple + "TooManyEntriesInBatchRequest", 400},
	"MessageNotInflight":                {simple + "MessageNotInflight", 400},
	"UnsupportedOperation":              {simple + "UnsupportedOperation", 400},
	"ReceiptHandleIsInvalid":            {"ReceiptHandleIsInvalid", 404},
	"InvalidAddress":                    {"InvalidAddress", 404},
	"ResourceNotFoundException":         {"ResourceNotFoundException", 404},
	"OverLimit":                         {"OverLimit", 403},
	"RequestThrottled":                  {"RequestThrottled", 403},
	"InvalidSecurity":                   {"InvalidSecurity", 403},
	"InvalidParameterValueException":    {"InvalidParameterValue", 400},
	"MissingRequiredParameterException": {"MissingParameter", 400},
	"AccessDenied":                      {"AccessDenied", 403},
	"InvalidClientTokenId":              {"InvalidClientTokenId", 403},
	"MissingAuthenticationToken":        {"MissingAuthenticationToken", 403},
	"SignatureDoesNotMatch":             {"SignatureDoesNotMatch", 403},
	"RequestEntityTooLarge":             {"RequestEntityTooLarge", 413},
	"RequestTimeout":                    {"RequestTimeout", 408},
	"InternalFailure":                   {"InternalFailure", 500},
	"ServiceUnavailable":                {"ServiceUnavailable", 503},
}
