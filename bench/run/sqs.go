package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay/bench"
)

const (
	sqsConns  = 64
	sqsGroups = 100_000
)

// sqsServer is a server with its endpoint, and the AWS SDK for Go as its client.
type sqsServer struct {
	*process
	addr   string
	client *sqs.Client
}

func startSQS(ctx context.Context, o options, name string) (*sqsServer, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p, err := startForebay(ctx, o, name, "--sqs-listen", addr)
	if err != nil {
		return nil, err
	}
	return &sqsServer{p, addr, sqsClient(addr)}, nil
}

// sqsClient has room for as many connections as there are callers, and tries nothing
// twice: an error is an error.
func sqsClient(addr string) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + addr), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 2*sqsPolls, 2*sqsPolls
		}),
	})
}

func (s *sqsServer) queue(ctx context.Context, name string, attributes map[string]string) (string, error) {
	out, err := s.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		return "", err
	}
	return *out.QueueUrl, nil
}

// sqsEndpoint measures durable sending, and receiving with deleting, in tens; for a
// standard queue, and for a FIFO queue with as many groups as 100,000.
func sqsEndpoint(ctx context.Context, o options, t *table) (err error) {
	s, err := startSQS(ctx, o, "sqs")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	window := time.Duration(o.seconds) * time.Second
	var sent, taken, sentFIFO, takenFIFO bench.Series
	for round := range o.rounds {
		for _, fifo := range []bool{false, true} {
			name, attributes := fmt.Sprintf("r%d", round), map[string]string(nil)
			if fifo {
				name, attributes = name+".fifo", map[string]string{
					"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
				}
			}
			url, err := s.queue(ctx, name, attributes)
			if err != nil {
				return err
			}
			in, err := s.sendFor(ctx, url, window, fifo)
			if err != nil {
				return err
			}
			out, err := s.takeAll(ctx, url, int64(in*window.Seconds()))
			if err != nil {
				return err
			}
			if fifo {
				sentFIFO, takenFIFO = append(sentFIFO, in), append(takenFIFO, out)
			} else {
				sent, taken = append(sent, in), append(taken, out)
			}
		}
	}
	t.figure("SendMessageBatch of ten, 64 at once", "messages/s", sent)
	t.target("the same", sent.Median(), "messages/s", "≥ 40,000", sent.Median() >= 40_000)
	t.figure("receive and delete in tens", "messages/s", taken)
	t.target("the same", taken.Median(), "messages/s", "≥ 20,000", taken.Median() >= 20_000)
	t.figure("FIFO, 100,000 groups, send", "messages/s", sentFIFO)
	t.figure("FIFO, receive and delete", "messages/s", takenFIFO)
	t.ratio("FIFO / standard, send", sentFIFO, sent, 0.5)
	t.ratio("FIFO / standard, receive and delete", takenFIFO, taken, 0.5)
	return nil
}

// sendFor sends for a while and gives the rate.
func (s *sqsServer) sendFor(ctx context.Context, url string, window time.Duration, fifo bool) (float64, error) {
	var n atomic.Int64
	began := time.Now()
	var group errgroup.Group
	for range sqsConns {
		group.Go(func() error {
			for time.Since(began) < window {
				if err := s.sendTen(ctx, url, n.Add(10), fifo); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(n.Load()) / time.Since(began).Seconds(), err
}

var tenIDs = [10]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

func (s *sqsServer) sendTen(ctx context.Context, url string, n int64, fifo bool) error {
	entries := make([]types.SendMessageBatchRequestEntry, 10)
	for i := range entries {
		body := fmt.Sprintf(`{"eventType":"app_open","userId":"u%d","payload":{"screen":"home","n":%d}}`, n%1000, n+int64(i))
		entries[i] = types.SendMessageBatchRequestEntry{Id: &tenIDs[i], MessageBody: &body}
		if fifo {
			entries[i].MessageGroupId = aws.String(fmt.Sprintf("g%d", (n+int64(i))%sqsGroups))
			entries[i].MessageDeduplicationId = aws.String(fmt.Sprintf("d%d", n+int64(i)))
		}
	}
	out, err := s.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
	if err == nil && len(out.Failed) > 0 {
		err = fmt.Errorf("an entry was refused: %s", aws.ToString(out.Failed[0].Message))
	}
	return err
}

// takeAll receives and deletes about n messages and gives the rate.
func (s *sqsServer) takeAll(ctx context.Context, url string, n int64) (float64, error) {
	var taken atomic.Int64
	began := time.Now()
	var group errgroup.Group
	for range sqsConns {
		group.Go(func() error {
			for taken.Load() < n*95/100 { // the last ones are scattered over who asks
				got, err := s.takeTen(ctx, url)
				if err != nil {
					return err
				}
				taken.Add(int64(got))
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(taken.Load()) / time.Since(began).Seconds(), err
}

func (s *sqsServer) takeTen(ctx context.Context, url string) (int, error) {
	out, err := s.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
	if err != nil || len(out.Messages) == 0 {
		return 0, err
	}
	entries := make([]types.DeleteMessageBatchRequestEntry, len(out.Messages))
	for i := range out.Messages {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: &tenIDs[i], ReceiptHandle: out.Messages[i].ReceiptHandle}
	}
	gone, err := s.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries})
	if err == nil && len(gone.Failed) > 0 {
		err = fmt.Errorf("a message was not deleted: %s", aws.ToString(gone.Failed[0].Message))
	}
	return len(out.Messages), err
}
