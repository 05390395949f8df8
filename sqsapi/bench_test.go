package sqsapi_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/queue"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

// durable is a front over a file that survives power loss, with signatures needed.
func durable(b *testing.B) (*served, accessKey) {
	b.Helper()
	eng, err := sqlite.Open(sqlite.Config{Path: filepath.Join(b.TempDir(), "forebay.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { eng.Close() })
	service, err := queue.New(queue.Config{Engine: eng})
	if err != nil {
		b.Fatal(err)
	}
	keys, err := sign.Open(filepath.Join(b.TempDir(), "keys.json"), sign.Config{})
	if err != nil {
		b.Fatal(err)
	}
	front, err := sqsapi.New(sqsapi.Config{Service: service, Keys: keys})
	if err != nil {
		b.Fatal(err)
	}
	s := &served{Server: httptest.NewServer(front), front: front, service: service, keys: keys}
	b.Cleanup(func() {
		front.Close()
		s.Server.Close()
	})
	return s, s.withKey(b)
}

func (s *served) sdk(key accessKey, connections int) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(s.URL),
		Credentials: credentials.NewStaticCredentialsProvider(key.id, key.secret, ""),
		HTTPClient:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}},
	})
}

func batchOf(body string) []types.SendMessageBatchRequestEntry {
	entries := make([]types.SendMessageBatchRequestEntry, 10)
	for i := range entries {
		entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &body}
	}
	return entries
}

const connections = 64

// BenchmarkSDK is the whole way: SDK, HTTP, signature, engine, disk and back, with
// client and server in one process.
func BenchmarkSDK(b *testing.B) {
	s, key := durable(b)
	c := s.sdk(key, connections)
	made, err := c.CreateQueue(b.Context(), &sqs.CreateQueueInput{QueueName: aws.String("bench")})
	if err != nil {
		b.Fatal(err)
	}
	url, body := made.QueueUrl, strings.Repeat("b", 200)
	b.Run("SendMessageBatch", func(b *testing.B) {
		cpu := cpuTime(b)
		b.SetParallelism(connections / 2)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				out, err := c.SendMessageBatch(b.Context(), &sqs.SendMessageBatchInput{QueueUrl: url, Entries: batchOf(body)})
				if err != nil || len(out.Successful) != 10 {
					b.Errorf("%+v, %v", out, err)
					return
				}
			}
		})
		report(b, 10*b.N, cpu)
	})
	b.Run("ReceiveAndDelete", func(b *testing.B) {
		var done atomic.Int64
		cpu := cpuTime(b)
		b.SetParallelism(connections / 2)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n, err := receiveAndDelete(b, c, url)
				if err != nil {
					b.Error(err)
					return
				}
				done.Add(int64(n))
			}
		})
		report(b, int(done.Load()), cpu)
	})
}

// report tells the rate, and what a message costs of processors, which a machine that
// has other work to do shows too.
func report(b *testing.B, messages int, before time.Duration) {
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(max(1, messages)), "cpu-us/message")
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func receiveAndDelete(b *testing.B, c *sqs.Client, url *string) (int, error) {
	got, err := c.ReceiveMessage(b.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10})
	if err != nil || len(got.Messages) == 0 {
		return 0, err
	}
	in := &sqs.DeleteMessageBatchInput{QueueUrl: url}
	for i, m := range got.Messages {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	out, err := c.DeleteMessageBatch(b.Context(), in)
	if err == nil && len(out.Failed) > 0 {
		err = fmt.Errorf("failed: %+v", out.Failed)
	}
	return len(got.Messages), err
}

// BenchmarkFront is the front's own part, without a network: of a batch that the
// service refuses before it reaches the engine.
func BenchmarkFront(b *testing.B) {
	s, key := durable(b)
	if _, err := s.service.CreateQueue(b.Context(), queue.CreateQueueInput{QueueName: "bench"}); err != nil {
		b.Fatal(err)
	}
	var entries, form strings.Builder
	for i := range 10 {
		fmt.Fprintf(&entries, `,{"Id":"same","MessageBody":"%s"}`, strings.Repeat("b", 200))
		fmt.Fprintf(&form, "&SendMessageBatchRequestEntry.%d.Id=same&SendMessageBatchRequestEntry.%d.MessageBody=%s", i, i, strings.Repeat("b", 200))
	}
	for name, body := range map[string]string{
		"JSON":  `{"QueueUrl":"` + s.URL + `/000000000000/bench","Entries":[` + entries.String()[1:] + `]}`,
		"Query": "Action=SendMessageBatch&QueueUrl=bench" + form.String(),
	} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest("POST", "http://sqs.test/", strings.NewReader(body))
			if name == "JSON" {
				r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessageBatch")
			} else {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			key.sign(b, r, body)
			b.ReportAllocs()
			for b.Loop() {
				r.Body = requestBody{bytes.NewReader([]byte(body))}
				w := httptest.NewRecorder()
				s.front.ServeHTTP(w, r)
				if w.Code != 400 {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}

type requestBody struct{ *bytes.Reader }

func (requestBody) Close() error { return nil }
