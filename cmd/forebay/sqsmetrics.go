package main

import "github.com/prometheus/client_golang/prometheus"

// sqsSeries shows what SQS was asked, and so what it costs.
type sqsSeries struct{ *shared }

var (
	sqsRequests = sqsDesc("requests_total", "Requests to SQS by action, those that the SDK repeated included. SQS is paid by the request, each 64 KiB as one.", "action")
	sqsMessages = sqsDesc("messages_total", "Messages sent to, received from and deleted on SQS.", "what")
	sqsPer      = sqsDesc("requests_per_message", "Requests for each message since the start; 0.3 is what full batches cost.")
	outboxSize  = prometheus.NewDesc("forebay_outbox_messages", "Messages that wait here for a queue that is out of reach.", []string{"queue"}, nil)
	outboxBytes = prometheus.NewDesc("forebay_outbox_bytes", "Bytes of them, about; sqs.outboxMax bounds them.", nil, nil)
	outboxAway  = prometheus.NewDesc("forebay_outbox_away", "1 while the queue elsewhere does not take messages.", []string{"queue"}, nil)
	sqsTroubles = sqsDesc("troubles_total", "What went wrong with SQS: throttled (answers refused by rate), failed (requests), "+
		"poll_cut (polls that did not answer by their deadline), ack_lost (messages that came again since their deletion was never confirmed), "+
		"lease_lost (leases that ended before a verdict), empty (receives without a message).", "what")
)

func sqsDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("forebay_sqs_"+name, help, labels, nil)
}

func (sqsSeries) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sqsRequests, sqsMessages, sqsPer, sqsTroubles, outboxSize, outboxBytes, outboxAway} {
		out <- d
	}
}

func (s sqsSeries) Collect(out chan<- prometheus.Metric) {
	c := s.remote.Counters()
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
	s.collectOutbox(out)
}

func (s sqsSeries) collectOutbox(out chan<- prometheus.Metric) {
	backlog, bytes := s.outbox.Backlog()
	out <- prometheus.MustNewConstMetric(outboxBytes, prometheus.GaugeValue, float64(bytes))
	for _, b := range backlog {
		out <- prometheus.MustNewConstMetric(outboxSize, prometheus.GaugeValue, float64(b.Messages), b.Queue)
		away := 0.0
		if b.Away {
			away = 1
		}
		out <- prometheus.MustNewConstMetric(outboxAway, prometheus.GaugeValue, away, b.Queue)
	}
}
