package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/sqs"
	"github.com/forebayhq/forebay/event"
)

// sqsTimeout bounds the questions to SQS.
const sqsTimeout = 15 * time.Second

// What SQS asks for a million requests, by its list for us-east-1
// (https://aws.amazon.com/sqs/pricing/); fullBatches is what batches of ten take.
const (
	standardPrice = 0.40
	fifoPrice     = 0.50
	fullBatches   = 0.3
)

// shared reads the real queue on SQS, if events go through one, and says what is wrong
// with it.
func (d *doctor) shared(ctx context.Context) []finding {
	const name = "sqs"
	url := d.settings.SQS.URL
	if url == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sqsTimeout)
	defer cancel()
	e, err := openSQS(d.settings, sqs.Config{HandlerTimeout: d.settings.Queue(event.Queue).Lease})
	if err != nil {
		return []finding{fail(name, hintOf(err), err)}
	}
	defer e.Close()
	stats, err := e.Stats(ctx, event.Queue)
	if err == nil && len(stats) == 0 {
		err = fmt.Errorf("it tells nothing of %s", url)
	}
	if err != nil {
		return []finding{fail(name, sqsHint(err), err)}
	}
	q := stats[0]
	all := []finding{ok(name, "%s: %s waiting, %s in flight, %s delayed", url, humanize.Comma(q.Waiting), humanize.Comma(q.Active), humanize.Comma(q.Delayed))}
	found, err := e.Audit(ctx)
	for _, f := range found {
		all = append(all, warn(name, f.Do, "%s", f.What))
	}
	if err != nil {
		all = append(all, fail(name, "the role may not read the queue's settings: sqs:GetQueueAttributes", err))
	}
	if d.settings.Sink.URL == "" && d.settings.Server.Has("worker") {
		all = append(all, warn(name, "set DATABASE_URL to a PostgreSQL that all consumers share",
			"events of a queue that servers share are written to a file of this one"))
	}
	return append(all, d.sqsCost(ctx))
}

// sqsHint tells what to do about a queue that cannot be read, and what becomes of events.
func sqsHint(err error) string {
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		return "make the queue, or correct sqs.url (AWS_SQS_QUEUE_URL); events are kept in the outbox meanwhile"
	}
	return "check sqs.url (AWS_SQS_QUEUE_URL), the region, and what the role may do; events are kept in the outbox meanwhile"
}

// sqsCost tells what a message takes, as the running server has measured it.
func (d *doctor) sqsCost(ctx context.Context) finding {
	const name = "sqs cost"
	price := standardPrice
	if isFIFO(d.settings.SQS.URL) {
		price = fifoPrice
	}
	if d.server != nil {
		if per, found := d.server.series(ctx, "forebay_sqs_requests_per_message"); found && per > 0 {
			return ok(name, "%.2f requests a message, %.2f USD a million by the list of us-east-1; full batches take %.1f", per, per*price, fullBatches)
		}
	}
	return ok(name, "%.2f USD a million messages in full batches (%.1f requests each), by the list of us-east-1; a server that runs tells its own",
		fullBatches*price, fullBatches)
}
