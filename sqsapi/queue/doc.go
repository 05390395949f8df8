// Package queue is what a queue of SQS means, on an engine of Forebay: the 23 actions
// with their limits, attributes, order, dead-letter queues and move tasks.
//
// It promises what AWS SQS was seen to do, durably: what Send answered survives a
// crash, and so do leases (visibility), receive counts and the queues themselves.
//
// It refuses to speak a protocol or to know who asks: package sqsapi does. Policies
// are stored and given back, not evaluated.
//
// # What is where
//
// A queue is the engine's queue of the same name, and a document that says what was
// set of it (store.go). A queue that the engine has and nobody created is one with
// default attributes. A message is a forebay.Message whose payload is the body
// (wire.go); a receipt handle is the engine's receipt, signed (handle.go).
//
//	SendMessage       check.go, send.go; FIFO: fifo.go, delay.go, funnel.go, number.go, again.go
//	ReceiveMessage    receive.go, hand.go, flight.go, attempts.go, firsts.go
//	Delete, Change    settle.go
//	dead letters      redrive.go; move tasks: move.go, mover.go, movestore.go
//	queues            create.go, configure.go, attributes.go, list.go, remove.go, tags.go, permission.go
//	by itself         run.go, sweep.go
//
// # FIFO queues
//
// The group is the engine's group, which keeps the order. One caller at a time sends
// for all (funnel.go), so that sequence numbers grow in the order of storing; they
// are part of the message's id, so that a duplicate is answered with those of the
// first. The dedup id is the engine's dedup key, made for this life of the queue, so
// that a purge or a queue of the same name forgets it. That key lasts for as long as
// its message is stored; again.go makes it five minutes.
//
// # What differs from AWS
//
//   - A message is handed out by every receive that asks for one, at once: nothing is
//     sampled. Counts are exact. A change of attributes holds at once here, and within
//     five seconds in another process on the same engine.
//   - A queue that only the engine had shows the default retention, but keeps messages
//     for ever until MessageRetentionPeriod is set: what Forebay's own producers sent
//     leaves by no default of SQS.
//   - A receive of a FIFO queue takes messages in their order; of the group of each it
//     takes what more there is among the next 256 messages (engine.Receive.Together), and
//     puts those of one group together. AWS fills it from one group first, where it can.
//   - Fair queues: the group id of a standard queue is taken and given back, and is the
//     engine's limit key. The embedded engine puts what keys with many messages send
//     behind what the others have, and both take turns. AWS looks at what is in flight,
//     and hands out of noisy groups only what nobody else can have. With
//     QueueLimits.KeyActive on the queue no group holds more than so many in flight.
//   - ApproximateFirstReceiveTimestamp is remembered for the last hundred thousand
//     messages or more of this process (firsts.go), ReceiveRequestAttemptId likewise
//     for ten thousand attempts (attempts.go).
//   - A message of a dead letter queue whose time is over by when it was sent first is
//     never handed out, but counted until it is over by when it was moved.
//   - The attribute Forebay.Kind of a message is its kind, for Forebay's own workers. What
//     others sent that is no text is received in base64, and its attribute
//     Forebay.Encoding says so.
//   - Encryption (KMS, SSE) is an attribute only. Sequence numbers are one row for all
//     queues of a process; several processes that send to one FIFO queue do not keep
//     their numbers in order.
//   - A job of Forebay (a message with a ledger record) that is received here is not
//     subject to retention, redrive and move tasks: its ledger decides.
package queue
