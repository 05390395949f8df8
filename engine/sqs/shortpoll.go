package sqs

import (
	"bytes"
	"context"
	"fmt"
	"io"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// short makes a poll say that it does not wait. The AWS SDK leaves a wait of 0 out of
// the request, and SQS then waits as long as the queue's own setting says: up to twenty
// seconds, where nobody wants to wait.
func short(o *awssqs.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Serialize.Insert(middleware.SerializeMiddlewareFunc("forebayShortPoll", sayZero), "OperationSerializer", middleware.After)
	})
}

func sayZero(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (middleware.SerializeOutput, middleware.Metadata, error) {
	var none middleware.SerializeOutput
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return none, middleware.Metadata{}, fmt.Errorf("the request is a %T", in.Request)
	}
	body, err := io.ReadAll(request.GetStream())
	if err != nil {
		return none, middleware.Metadata{}, err
	}
	rest, isObject := bytes.CutPrefix(body, []byte(`{"`)) // never empty: it names the queue
	if !isObject {
		return none, middleware.Metadata{}, fmt.Errorf("the request is no JSON object")
	}
	request, err = request.SetStream(bytes.NewReader(append([]byte(`{"WaitTimeSeconds":0,"`), rest...)))
	if err != nil {
		return none, middleware.Metadata{}, err
	}
	in.Request = request
	return next.HandleSerialize(ctx, in)
}
