package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay/bench"
)

const (
	sqsPolls = 1_000 // long polls that wait
	sqsTimed = 2_000 // receives of which each is timed
)

// sqsBacklog compares what a receive takes with many messages waiting and with few.
func sqsBacklog(ctx context.Context, o options, t *table) (err error) {
	s, err := startSQS(ctx, o, "sqsbacklog")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	var few, many []time.Duration
	for _, c := range []struct {
		name  string
		n     int
		times *[]time.Duration
	}{{"few", sqsTimed + 1000, &few}, {"many", o.backlog + sqsTimed, &many}} {
		url, err := s.queue(ctx, c.name, nil)
		if err != nil {
			return err
		}
		if err := s.fill(ctx, url, c.n); err != nil {
			return err
		}
		for range sqsTimed {
			began := time.Now()
			out, err := s.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url})
			*c.times = append(*c.times, time.Since(began))
			if err != nil || len(out.Messages) != 1 {
				return errors.Join(err, errors.New("a receive gave nothing"))
			}
		}
		slices.Sort(*c.times)
	}
	ms := func(times []time.Duration) float64 { return bench.Quantile(times, 0.99).Seconds() * 1000 }
	t.figure("receive, p99, 1,000 waiting", "ms", bench.Series{ms(few)})
	t.figure(fmt.Sprintf("receive, p99, %s waiting", short(float64(o.backlog))), "ms", bench.Series{ms(many)})
	ratio := ms(many) / ms(few)
	t.target("many / few", ratio, "", "≤ 1.50", ratio <= 1.5)
	return nil
}

func (s *sqsServer) fill(ctx context.Context, url string, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sqsConns)
	for i := 0; i < n; i += 10 {
		group.Go(func() error { return s.sendTen(ctx, url, int64(i), false) })
	}
	return group.Wait()
}

// sqsIdle measures what long polls cost that wait for nothing.
func sqsIdle(ctx context.Context, o options, t *table) (err error) {
	s, err := startSQS(ctx, o, "sqsidle")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	url, err := s.queue(ctx, "idle", nil)
	if err != nil {
		return err
	}
	if _, err := s.takeTen(ctx, url); err != nil { // what the first receive of all needs is there
		return err
	}
	before, err := rss(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	polling, stop := context.WithCancel(ctx)
	var group errgroup.Group
	for range sqsPolls {
		group.Go(func() error {
			for polling.Err() == nil {
				_, err := s.client.ReceiveMessage(polling, &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20})
				if err != nil && polling.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	const settle, window = 5 * time.Second, 10 * time.Second // both within one wait of 20 s
	cpu, memory, err := s.watch(ctx, settle, window)
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	t.target("CPU of 1,000 idle long polls", cpu, "% of one core", "≤ 1.00", cpu <= 1)
	grown := float64(memory-before) / (1 << 20)
	t.target("their memory", grown, "MiB", "≤ 50", grown <= 50)
	return nil
}

// watch waits for settle, then tells the share of a core that is used in window, and
// the memory at its end.
func (s *sqsServer) watch(ctx context.Context, settle, window time.Duration) (cpu float64, memory int64, err error) {
	pid := s.cmd.Process.Pid
	if err := pause(ctx, settle); err != nil {
		return 0, 0, err
	}
	before, err := cpuTime(pid)
	if err != nil {
		return 0, 0, err
	}
	if err := pause(ctx, window); err != nil {
		return 0, 0, err
	}
	after, err := cpuTime(pid)
	if err != nil {
		return 0, 0, err
	}
	memory, err = rss(pid)
	return 100 * (after - before).Seconds() / window.Seconds(), memory, err
}

// rss is the resident memory of a process in bytes.
func rss(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, fmt.Errorf("statm of %d: %q", pid, b)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// sqsConsumer measures events through the AWS SDK and the worker into the sink: one
// server has the queue, another takes events in, and a third, which is measured,
// consumes. All are on this machine; what is consumed was sent before.
func sqsConsumer(ctx context.Context, o options, t *table) (err error) {
	s, err := startSQS(ctx, o, "sqsqueue")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	url, err := s.queue(ctx, "app-events", map[string]string{"VisibilityTimeout": "60"})
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"AWS_SQS_QUEUE_URL": url, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	} {
		if err := os.Setenv(name, value); err != nil { // of the processes that are started next
			return err
		}
		defer os.Unsetenv(name)
	}
	const n = 150_000
	if err := ingestOverSQS(ctx, o, n); err != nil {
		return err
	}
	c, err := startForebay(ctx, o, "sqsconsumer", "--roles", "worker", "--sqs-listen", "off")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	left, err := s.left(ctx, url, n*95/100) // its start is over
	if err != nil {
		return err
	}
	began := time.Now()
	used, err1 := cpuTime(c.cmd.Process.Pid)
	served, err2 := cpuTime(s.cmd.Process.Pid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if _, err := s.left(ctx, url, 0); err != nil {
		return err
	}
	rate := float64(left) / time.Since(began).Seconds()
	t.target("SQS to the sink", rate, "messages/s", "≥ 15,000", rate >= 15_000)
	usedThen, err1 := cpuTime(c.cmd.Process.Pid)
	servedThen, err2 := cpuTime(s.cmd.Process.Pid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	each := func(d time.Duration) bench.Series { return bench.Series{float64(d.Microseconds()) / float64(left)} }
	t.figure("CPU of the consumer", "µs a message", each(usedThen-used))
	t.figure("CPU of the endpoint", "µs a message", each(servedThen-served))
	per, err := c.metric(ctx, "forebay_sqs_requests_per_message")
	if err != nil {
		return err
	}
	t.target("requests a message (receive and delete)", per, "", "≤ 0.35", per <= 0.35)
	return nil
}

// ingestOverSQS sends events through the edge of a server whose queue is on SQS.
func ingestOverSQS(ctx context.Context, o options, n int) (err error) {
	const batch = 500
	p, err := startForebay(ctx, o, "sqsingest", "--roles", "ingest", "--sqs-listen", "off")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	var body strings.Builder
	for i := range batch {
		fmt.Fprintf(&body, `{"eventType":"app_open","userId":"u%d","payload":{"screen":"home","n":%d}}`+"\n", i, i)
	}
	var group errgroup.Group
	group.SetLimit(8)
	for range n / batch {
		group.Go(func() error {
			resp, err := http.Post(p.url+"/ingest/batch", "application/x-ndjson", strings.NewReader(body.String()))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusAccepted {
				return fmt.Errorf("a batch was answered with %s", resp.Status)
			}
			return nil
		})
	}
	return group.Wait()
}

// left waits until no more than most messages are in a queue, and tells how many are.
func (s *sqsServer) left(ctx context.Context, url string, most int) (int, error) {
	for {
		out, err := s.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
		if err != nil {
			return 0, err
		}
		visible, err1 := strconv.Atoi(out.Attributes["ApproximateNumberOfMessages"])
		hidden, err2 := strconv.Atoi(out.Attributes["ApproximateNumberOfMessagesNotVisible"])
		if err := errors.Join(err1, err2); err != nil {
			return 0, err
		}
		if visible+hidden <= most {
			return visible + hidden, nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// metric reads a series without labels.
func (p *process) metric(ctx context.Context, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("there is no series %s", name)
}
