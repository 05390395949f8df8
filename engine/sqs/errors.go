package sqs

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/forebayhq/forebay"
)

// codes of what SQS answers. Its HTTP status says nothing: it throttles with 403 and
// with 400.
var codes = map[string]forebay.Code{
	"RequestThrottled": forebay.CodeLimited, "OverLimit": forebay.CodeLimited, "KmsThrottled": forebay.CodeLimited,
	"KMS.ThrottlingException": forebay.CodeLimited, "Throttling": forebay.CodeLimited, "ThrottlingException": forebay.CodeLimited,
	"ThrottledException": forebay.CodeLimited, "RequestThrottledException": forebay.CodeLimited, "SlowDown": forebay.CodeLimited,
	"TooManyRequestsException": forebay.CodeLimited, "RequestLimitExceeded": forebay.CodeLimited,
	"PurgeQueueInProgress": forebay.CodeLimited,

	"AccessDenied": forebay.CodeUnauthorized, "AccessDeniedException": forebay.CodeUnauthorized,
	"InvalidClientTokenId": forebay.CodeUnauthorized, "UnrecognizedClientException": forebay.CodeUnauthorized,
	"SignatureDoesNotMatch": forebay.CodeUnauthorized, "InvalidSignatureException": forebay.CodeUnauthorized,
	"IncompleteSignature": forebay.CodeUnauthorized, "MissingAuthenticationToken": forebay.CodeUnauthorized,
	"ExpiredToken": forebay.CodeUnauthorized, "ExpiredTokenException": forebay.CodeUnauthorized,
	"RequestExpired": forebay.CodeUnauthorized, "InvalidSecurity": forebay.CodeUnauthorized,
	"InvalidAccessKeyId": forebay.CodeUnauthorized, "NotAuthorized": forebay.CodeUnauthorized, "OptInRequired": forebay.CodeUnauthorized,
	"KmsAccessDenied": forebay.CodeUnauthorized, "KMS.AccessDeniedException": forebay.CodeUnauthorized,
	"KmsOptInRequired": forebay.CodeUnauthorized, "KMS.OptInRequired": forebay.CodeUnauthorized,

	"QueueDoesNotExist": forebay.CodeNotFound, "ResourceNotFoundException": forebay.CodeNotFound,
	"InvalidMessageContents": forebay.CodeInvalid, "InvalidParameterValue": forebay.CodeInvalid,
	"InvalidParameterValueException": forebay.CodeInvalid, "MissingParameter": forebay.CodeInvalid,
	"MissingRequiredParameterException": forebay.CodeInvalid, "InvalidAttributeName": forebay.CodeInvalid,
	"InvalidAttributeValue": forebay.CodeInvalid, "ValidationException": forebay.CodeInvalid, "InvalidAddress": forebay.CodeInvalid,
	"BatchRequestTooLong": forebay.CodeTooLarge, "UnsupportedOperation": forebay.CodeUnsupported,
	"ReceiptHandleIsInvalid": forebay.CodeLeaseLost, "MessageNotInflight": forebay.CodeLeaseLost, "InvalidIdFormat": forebay.CodeLeaseLost,
}

// hints tell an operator what to do.
var hints = map[forebay.Code]string{
	forebay.CodeUnauthorized: "look at the role or key that the AWS SDK finds, its rights on the queue, and the clock of this machine",
	forebay.CodeNotFound:     "look at the queue's URL, its region and account",
	forebay.CodeLimited:      "SQS throttles; it is asked again, more slowly",
}

// codeOf finds the code of what the AWS SDK answered. Whatever did not come from SQS
// (a broken connection, a deadline) is that SQS is out of reach.
func codeOf(name string) forebay.Code {
	name = strings.TrimPrefix(name, "AWS.SimpleQueueService.") // older answers have it
	if name == "NonExistentQueue" {
		return forebay.CodeNotFound
	}
	if code, ok := codes[name]; ok {
		return code
	}
	return forebay.CodeUnavailable
}

// fail makes an error of ours from one of the AWS SDK.
func fail(op string, err error) error {
	code := forebay.CodeUnavailable
	var answer smithy.APIError
	switch {
	case errors.As(err, &answer):
		code = codeOf(answer.ErrorCode())
	case strings.Contains(err.Error(), "get credentials") || strings.Contains(err.Error(), "static credentials are empty"):
		code = forebay.CodeUnauthorized
	}
	return told(code, forebay.Errorf(code, "sqs: "+op, "%w", err))
}

// errDenied marks what SQS refuses to whoever this process is there.
var errDenied = errors.New("SQS refuses the credentials of this server")

// told finishes an error for callers. That SQS refuses this server is no word on who
// calls it: to callers SQS is unavailable, and the hint is for the operator.
func told(code forebay.Code, err *forebay.Error) error {
	err.Hint = hints[code]
	if code == forebay.CodeUnauthorized {
		err.Code, err.Err = forebay.CodeUnavailable, errors.Join(errDenied, err.Err)
	}
	return err
}

// answered tells whether an error is an answer of SQS, and not the lack of one.
func answered(err error) bool {
	var answer smithy.APIError
	return errors.As(err, &answer)
}

// answers reads what a batch's answer says of each of its n items. Ids are indexes.
// An item of which it does not speak may have been done or not.
func (e *Engine) answers(op string, n int, ok []*string, failed []types.BatchResultErrorEntry) []error {
	errs, told := make([]error, n), make([]bool, n)
	at := func(id *string) (int, bool) {
		i, err := strconv.Atoi(deref(id))
		return i, err == nil && i >= 0 && i < n && !told[i]
	}
	for _, id := range ok {
		if i, valid := at(id); valid {
			told[i] = true
		}
	}
	for _, f := range failed {
		if i, valid := at(f.Id); valid {
			told[i], errs[i] = true, refused(op, f)
			e.count.failed(errs[i])
		}
	}
	for i := range errs {
		if !told[i] {
			errs[i] = forebay.Errorf(forebay.CodeUnavailable, "sqs: "+op, "SQS answered without a word on this message")
		}
	}
	return errs
}

// unanswered is the same for a request that failed as a whole.
func (e *Engine) unanswered(op string, n int, err error) []error {
	err = fail(op, err)
	e.count.failed(err)
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// refused makes an error from an item that a batch's answer lists as failed.
func refused(op string, f types.BatchResultErrorEntry) error {
	name := deref(f.Code)
	code := codeOf(name)
	if code == forebay.CodeUnavailable && f.SenderFault {
		code = forebay.CodeInvalid
	}
	return told(code, forebay.Errorf(code, "sqs: "+op, "%s: %s", name, deref(f.Message)))
}

// passing tells whether the same call may work later.
func passing(err error) bool {
	switch forebay.CodeOf(err) {
	case forebay.CodeUnavailable, forebay.CodeLimited:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

func deref[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
