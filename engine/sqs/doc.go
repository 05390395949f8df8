// Package sqs is the engine that keeps messages on AWS SQS, or on whatever speaks its
// protocol (package sqsapi does). It is a transport: what SQS cannot do it says.
//
// # What holds
//
// Send, Receive, Extend, Settle and Stats as package engine says, with these words:
//
//   - Durable when it returns: SQS has it, on several machines.
//   - Fenced: leases are known here, each with the moment up to which SQS has promised
//     it. A receipt that was settled, or whose lease may have ended, gets lease_lost
//     without a question to SQS. So receipts are of this engine and of no other process:
//     a standard queue takes a handle also when its lease has ended or it was settled,
//     and only who remembers the lease can refuse it.
//   - A message is handed out while it can be worked on: never more than asked, and
//     with its whole lease. Who leaves a Receive leaves nothing behind: an open poll
//     gets a short grace, and what it brings is given back.
//   - Polls never stop: each has a deadline after which it is asked anew on another
//     connection, and failures are tried again, later and later, up to half a minute.
//   - One poll runs where nothing comes; while polls come back full there are more.
//   - Calls of many callers share requests of ten (tens.go). Refused items are told one
//     by one. What SQS may do when asked again is asked again until the lease ends.
//   - An ack that SQS never confirmed is remembered: if that message comes again, it is
//     deleted and not handed out.
//   - On a FIFO queue messages of a group are sent one after the other, and none after
//     one that failed. A poll whose answer was lost is asked again by its attempt id.
//   - Next: sent first, with fixed ids, then the verdict. Both, or the same again.
//   - Errors are told by code, never by HTTP status (errors.go).
//
// # What does not hold, because SQS does not do it
//
//   - Ids do not join messages on a standard queue, and on a FIFO queue for five
//     minutes only; SQS does not tell who is a duplicate. Handlers are told twice by the
//     message's id.
//   - Attempts are hand-outs: each Receive counts, also one that ended in a release or
//     a crash. Causes of earlier failures are not kept.
//   - Time is counted in whole seconds. A lease ends twelve hours after its receipt.
//   - Payloads and their names have 1 MiB together; bytes that are no text take a third
//     more (base64).
//   - Order of age is best effort; groups of a standard queue share it fairly and have
//     no order (a .fifo queue keeps it).
//   - What waits for a retry is in flight for SQS. Stats counts it as delayed where this
//     process set the retry.
//   - Purge drops what is in flight too, once a minute.
//
// # What it refuses, with CodeUnsupported
//
// Jobs (there is no ledger; package engine/ledger keeps one beside), priorities, dedup keys on standard queues, delays over 15
// minutes, any delay on FIFO queues, leases that outlive the engine (Receive.Kept), dead
// letters where the queue has no redrive policy. Package engine/outbox keeps some of it
// in a local engine.
//
// Credentials come from the AWS SDK's own chain; none is ever a setting here.
package sqs
