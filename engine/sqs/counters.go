package sqs

import (
	"sync/atomic"

	"github.com/forebayhq/forebay"
)

// Counters tell what an engine has done since it was opened. SQS is paid by the
// request (each 64 KiB of one count), so PerMessage is what it costs.
type Counters struct {
	Sends    int64 // requests that sent
	Receives int64 // that received
	Deletes  int64
	Changes  int64 // of visibility: heartbeats, retries, releases
	Others   int64

	Sent          int64 // messages
	Received      int64
	Deleted       int64
	EmptyReceives int64 // answers without a message
	Throttled     int64 // answers and items refused by throttling
	Failures      int64 // requests that failed otherwise
	PollsCut      int64 // polls that did not answer by their deadline
	AckLost       int64 // messages that came again after an ack that SQS never confirmed
	LeaseLost     int64 // leases that ended, or that SQS says have ended, before their verdict
	GivenBack     int64 // messages of polls whose Receive had left
	TestEvents    int64 // s3:TestEvent, which are no events
}

// Requests is all of them.
func (c Counters) Requests() int64 { return c.Sends + c.Receives + c.Deletes + c.Changes + c.Others }

// PerMessage is how many requests a message took; 0 before the first one.
func (c Counters) PerMessage() float64 {
	most := max(c.Sent, c.Received, c.Deleted)
	if most == 0 {
		return 0
	}
	return float64(c.Requests()) / float64(most)
}

type counters struct {
	sends, receives, deletes, changes, others                atomic.Int64
	sent, received, deleted, empty, throttled, failures, cut atomic.Int64
	ackLost, leaseLost, givenBack, testEvents                atomic.Int64
}

// Counters reads them, each for itself.
func (e *Engine) Counters() Counters {
	c := &e.count
	return Counters{
		Sends: c.sends.Load(), Receives: c.receives.Load(), Deletes: c.deletes.Load(), Changes: c.changes.Load(),
		Others: c.others.Load(), Sent: c.sent.Load(), Received: c.received.Load(), Deleted: c.deleted.Load(),
		EmptyReceives: c.empty.Load(), Throttled: c.throttled.Load(), Failures: c.failures.Load(), PollsCut: c.cut.Load(),
		AckLost: c.ackLost.Load(), LeaseLost: c.leaseLost.Load(), GivenBack: c.givenBack.Load(), TestEvents: c.testEvents.Load(),
	}
}

// failed counts an error of a request.
func (c *counters) failed(err error) {
	if forebay.CodeOf(err) == forebay.CodeLimited {
		c.throttled.Add(1)
	} else {
		c.failures.Add(1)
	}
}
