// Package move brings the jobs of one engine to another: those that wait, those that have
// ended, with how they did, dead letters, documents and the limits of queues.
//
// It promises that each job is in the target under its id with the content that it had, in
// the same order within a queue, and that this is looked at, job by job, before anything
// changes in the source; then what waits there is cancelled, so that nothing runs twice. A
// move that was cut off is done again and goes on; one that is done is done again and changes
// nothing: what was moved is compared, and never touched again.
//
// It refuses a target that works on something else: a job that has ended is put there by
// sending it, taking it and settling it as it was, and no worker may come between.
//
// Not the same afterwards: jobs that wait have all their attempts again; those that have
// ended did so when they were moved, and their dedup keys are free; the history is that of
// the move.
package move
