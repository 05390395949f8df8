// Package postgres is the engine on PostgreSQL 14 or later, in a schema of its own, for any
// number of processes.
//
// # What is where
//
// Table item has what waits or is active: one narrow row, which a claim rewrites, with
// partial indexes for each state. Claims go along one of them (queue, tenant, rank, number),
// so that their work does not grow with the backlog; what is delayed, leased, behind another
// of its group or held up by its limit key is in other indexes. Table body has what messages
// say, written once. Table record has ids and dedup keys; its rows are written by the
// transaction that stores the message. Table ended has finished jobs and dead letters, event
// the history. Their autovacuum is set to come early. schema.sql is the whole of it.
//
// # How it goes
//
// Calls that come while a transaction is under way are done together in the next one
// (combine.go), rows in bulk, in two to four round trips (work.go). Receives of a queue meet
// at a desk and are claimed for together (desk.go). A queue with plain messages only is
// claimed from by all processes side by side, FOR UPDATE SKIP LOCKED. Where a queue has
// groups, limit keys, tenants or limits, whoever claims from it, or settles what has a group
// or a limit key, has the queue alone for the time of the transaction: an advisory lock, which
// a pooler in transaction mode keeps as well. What time alone does, the keeper does, by the
// earliest moment that it asks for (keeper.go).
//
// # What holds
//
// The clock is the server's (clock_timestamp); times of day that come and go in messages are
// converted (clocks.go). Send, Settle and the like return when their
// transaction is committed, as durably as synchronous_commit of the server, the database or
// the user of the address says; Open does not change it. Claims, extended leases, progress and
// what the keeper does commit without waiting for the disk: if the machine of the server
// ends, such messages wait again, and their receipts are void. All leases are in the store,
// so Receive.Kept costs nothing; Close ends those that were not kept.
//
// An error with CodeUnavailable after the connection broke does not tell whether the call was
// done. Repeating is harmless: a send is a duplicate, a settle that had been done is refused
// as lease_lost, and what a broken receive had leased comes again when its lease ends. A call
// of more than 32 MiB is several transactions.
//
// Signals between processes are NOTIFY, after the transactions and never in them, since
// NOTIFY locks the database until its commit (wire.go). One connection listens. Where it is
// away, or a pooler keeps it deaf, receives look once a second instead.
//
// # What it does not do
//
//   - Stats and Finished count what is there: their cost grows with the backlog.
//   - A long transaction of anybody on the server keeps dead rows of claims and settlements,
//     and each claim goes past those of its queue. Nothing is wrong, only slower.
//   - It does not tell bytes on disk (engine.Sizer), act on void receipts (engine.Late) or
//     keep what was settled (engine.Log). Queues of the SQS endpoint, which want the first
//     two, and events, whose history wants the last, are elsewhere.
//   - A claim looks at all tenants of its queue that have something waiting.
//   - Receive.Together does nothing: several of a group come together anyway.
package postgres
