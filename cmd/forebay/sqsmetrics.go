package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/forebayhq/forebay/engine/sqs"
)

// sqsSeries shows what SQS was asked, and so what it costs.
type sqsSeries struct {
	engine *sqs.Engine
}

var (
	sqsRequests = sqsDesc("requests_total", "Requests to SQS by action, those that the SDK repeated included. SQS is paid by the request, each 64 KiB as one.", "action")
	sqsMessages = sqsDesc("messages_total", "Messages sent to, received from and deleted on SQS.", "what")
	sqsPer      = sqsDesc("requests_per_message", "Requests for each message since the start; 0.3 is what full batches cost.")
	sqsTroubles = sqsDesc("troubles_total", "What went wrong with SQS: throttled (answers refused by rate), failed (requests), "+
		"poll_cut (polls that did not answer by their deadline), ack_lost (messages that came again since their deletion was never confirmed), "+
		"lease_lost (leases that ended before a verdict), empty (receives without a message).", "what")
)

func sqsDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("forebay_sqs_"+name, help, labels, nil)
}

func (sqsSeries) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sqsRequests, sqsMessages, sqsPer, sqsTroubles} {
		out <- d
	}
}

func (s sqsSeries) Collect(out chan<- prometheus.Metric) {
	c := s.engine.Counters()
	out <- prometheus.MustNewConstMetric(sqsPer, prometheus.GaugeValue, c.PerMessage())
	series := func(d *prometheus.Desc, values map[string]int64) {
		for label, n := range values {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), label)
		}
	}
	series(sqsRequests, map[string]int64{"send": c.Sends, "receive": c.Receives, "delete": c.Deletes, "change": c.Changes, "other": c.Others})
	series(sqsMessages, map[string]int64{"sent": c.Sent, "received": c.Received, "deleted": c.Deleted})
	series(sqsTroubles, map[string]int64{
		"throttled": c.Throttled, "failed": c.Failures, "poll_cut": c.PollsCut, "ack_lost": c.AckLost, "lease_lost": c.LeaseLost, "empty": c.EmptyReceives,
	})
}
