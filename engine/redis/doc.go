// Package redis is the engine on Redis. Its data is laid out as BullMQ 5 and 6 lay
// it out, so that Node producers, workers, QueueEvents and bull-board work on the same
// queues: what Node adds is worked here, and the reverse. What it does to the data is
// done by scripts of our own (folder lua), each of which says its transition and keys.
//
// # What is whose
//
// wait, prioritized, delayed, active, completed, failed, meta, marker, events, locks and
// the hash of a job are BullMQ's. Beside them are keys of ours: per queue under
// <prefix>:<queue>:fb:, of no queue under <prefix>::fb:, and fields fb… of the hash.
// BullMQ neither reads nor changes them. What BullMQ has no rule for (groups, limit
// keys, tenants, a key of which the last is kept) waits in keys of ours until it is
// handed out, so that no Node worker takes it against its rule; once active it is like
// any other. Ids that BullMQ cannot have are written with %XX for a byte.
//
// # What holds
//
// The clock is the server's. Time alone is done to a queue by whichever call comes next,
// and by one timer of each process. Leases are BullMQ's locks with an end of their own,
// exact to the millisecond; they outlive the process, so Receive.Kept costs nothing, and
// Close ends those that were not kept. A sweep gives back what a Node worker left
// without a lock, and drops what is ours of jobs that Node clients finished, removed or
// obliterated. A script does a bounded amount of work: 250 messages of a Send, 250
// settlements, 500 hand-outs. A longer Send or Settle is several scripts one after
// the other, so that a crash in between leaves the first of them done.
//
// Durable means what the server's settings say: Open does not change them, and Audit
// names those that lose data (no append-only file, everysec, an eviction policy).
//
// An error of a whole call with CodeUnavailable after the connection broke does not tell
// whether it was done. Repeating is harmless: a send is a duplicate, a settle that had
// been done is refused as lease_lost, and what a broken receive had leased comes again
// when its lease ends.
//
// # What it does not do
//
//   - It does not tell bytes on disk (engine.Sizer: a server has none of ours), nor act on
//     void receipts (engine.Late): they have no mark of the store, and a message that was
//     sent again has the same. Queues of the SQS endpoint, which want that, are elsewhere.
//   - It makes the next run of a BullMQ job scheduler, but no scheduler: Node clients do.
//   - BullMQ's getWorkers lists it for so many queues as Config.Listed says, each of which
//     costs a connection.
//   - Dead letters are grouped by their cause when somebody asks, or by the keeper, each
//     once. One that a Node client took away is counted until a sweep misses it.
//   - History has what this engine did; what a Node worker does is in BullMQ's events.
//   - Cancelling a job in a long wait list walks the list (LREM), as BullMQ does.
//   - A Node worker keeps the pause and the most active of a queue, and a rate per window
//     of its own counting; it knows nothing of priorities that age.
//   - On a cluster all keys of a prefix are in one slot.
package redis
