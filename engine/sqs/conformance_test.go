package sqs_test

import (
	"maps"
	"testing"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/sqs"
)

func TestConformance(t *testing.T) {
	h := harness(false)
	maps.Copy(h.Cannot, map[enginetest.Ability]string{
		enginetest.DedupKeys: "a standard queue joins no messages",
		enginetest.Joining:   "a standard queue joins no messages",
		enginetest.Grouping:  "a standard queue has no order; groups share it fairly",
	})
	enginetest.Run(t, h)
}

func TestConformanceFIFO(t *testing.T) {
	h := harness(true)
	maps.Copy(h.Cannot, map[enginetest.Ability]string{
		enginetest.Telling:  "a FIFO queue joins messages for five minutes and tells nobody",
		enginetest.Delaying: "a FIFO queue delays all of its messages or none",
	})
	enginetest.Run(t, h)
}

func harness(fifo bool) enginetest.Harness {
	return enginetest.Harness{
		Open: func(t testing.TB) engine.Engine {
			ep := newEndpoint(t)
			return remote{ep.open(t, func(c *sqs.Config) { c.CreateFIFO = fifo }), ep}
		},
		Cannot: map[enginetest.Ability]string{
			enginetest.DeadLetters:  "dead letters are a queue of their own on SQS",
			enginetest.DeadGrouping: "dead letters are a queue of their own on SQS",
			enginetest.Locating:     "SQS finds no message by its id",
			enginetest.Limiting:     "SQS has no limits",
			enginetest.Sizing:       "SQS has no disk of ours",
			enginetest.Priorities:   "SQS has no priorities",
			enginetest.Ledger:       "SQS keeps no ledger",
			enginetest.Listing:      "SQS keeps no ledger",
			enginetest.Documenting:  "SQS keeps no documents",
			enginetest.Keeping:      "receipts are of one engine; SQS keeps the leases themselves",
			enginetest.LateSettling: "late receipts are fenced here, though SQS would take some",
			enginetest.Peeking:      "SQS shows no message without a hand-out",
			enginetest.QueueDelays:  "the delay of a queue on SQS is an attribute of it, which its owner sets",
			enginetest.Logging:      "SQS forgets what was settled",
			enginetest.Counting:     "SQS counts hand-outs and nothing else",
			enginetest.Recalling:    "SQS keeps a message as it was sent",
			enginetest.Leaving:      "an open poll gets a grace, so that what it brings is given back",
			enginetest.Filling:      "SQS takes text, of 1 MiB with all names",
			enginetest.Sorting:      "requests of ten go side by side, both ways",
			enginetest.Dating:       "SQS tells that to CloudWatch only",
			enginetest.Sparing:      "SQS drops what is in flight too",
		},
	}
}
