// Package sqlite is the engine that needs no server: one SQLite file, or memory.
//
// # How it stores
//
// Messages of one commit for one lane (a queue at one level of priority) share a
// row, a block. A bitmap beside it says which of them are settled; a block that is
// settled whole leaves. So a message costs a few hundred bytes of sequential
// writing and no index entry. Only what goes a way of its own has a row of its own
// (table again): a message that is delayed, was retried, released, or lost its
// lease. The tables are described in schema.go.
//
// # Who is authoritative
//
// One goroutine, the loop, owns the connection and everything in memory. Each of
// its cycles takes all calls that wait, applies them in one transaction, commits and
// publishes to memory (loop.go, tx.go). A second goroutine syncs the log and answers,
// while the loop commits the next group (flusher.go; sync.go for syncs that fail).
// What is committed is visible before it is synced; it is acknowledged, and whatever
// is decided on it, only after. The store is the truth
// of what is committed; memory adds what dies with the process: leases, waiters,
// where the lanes' cursors stand, which groups and limit keys are taken. A lease's
// row, written without a sync, serves to count deliveries after a crash; by that of a
// kept one the next start takes it up (loadleases.go).
//
// # Life of a message
//
//	Send      encoded by the caller, put into a block by the loop   send.go, tx.go
//	waiting   met by the cursor of its lane                         lane.go, claim.go
//	active    an item of a lease                                    lease.go, extend.go
//	late      found by a receipt of a lease that is over            receipt.go, late.go
//	again     a ref in memory or a row to be loaded when due        later.go, group.go
//	settled   a bit, a row of dead letters, or a place in again     settle.go, dead.go
//
// # Jobs
//
// A message with options is a job (options.go). While it lives it is stored as any
// other; what the ledger adds is written by the same commit, a row for many jobs:
//
//	history    what happened to jobs of one commit             history.go, historyread.go
//	finished   jobs of one commit and queue that have ended    finished.go, finishedwrite.go
//	dead       those that failed for good                      dead.go
//	ends       when a job expires or has its deadline          ends.go
//	stop       an active job was asked to stop                 cancel.go, ledger.go
//
// A job is found by its id: live ones through what dedup remembers, finished ones
// through an index (job.go). What leaves by age, count or bytes leaves in slices
// (retention.go). Progress is in memory, and in the history. Only the payload of a
// job that waits is ever written anew in its place (rewrite.go).
//
// What the engine does by itself (ends, leases of jobs that must stop, retention) are
// ops of the same cycle that nobody waits for; the timer that brought one is set
// again, so that what the store refuses is done again.
//
// Each tenant of a queue has lanes of its own, and they take turns (tenant.go); a
// group is with one of them at a time (seat.go). Jobs are found by signatures that are
// made after the fact, between the cycles (sign.go), and listed in small pieces
// (list.go). Documents are rows of their own (document.go).
//
// # What it promises
//
// All of package engine, with the optional abilities. With DurabilityFull an
// answer means that fdatasync has returned. Memory is bounded by what is handed
// out and by the bounds named in the files above, not by the backlog. A damaged
// record loses itself only, and what is lost is told. Records, what is settled, and
// who waits or was handed out carry checksums (sum.go), and so do finished jobs and the
// history. Without one are the names and limits of queues, what dedup remembers, a
// block's time, how long finished jobs are kept, and when jobs end.
//
// # What it refuses
//
// A second process on the same file; a file of a newer version or of another
// program; policy (how often to retry is package broker's); network file systems,
// on which SQLite's locks and shared memory do not hold.
package sqlite
