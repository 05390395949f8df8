// Package schedule adds jobs again and again: at the times of a cron text in a time
// zone, or every so often. A time at which a schedule adds a job is a tick.
//
// The life of a tick:
//
//	it is due         what to do is decided by the schedule's policies and its state,
//	                  and stored, in one document with the definition, if that is still
//	                  as it was read. Of several processes one can do that
//	it is decided     its job is sent. The job's id is made of schedule and tick, so to
//	                  send it again adds nothing
//	it is sent        the document says so
//	the process dies  whoever reads the document next (a start, or another process after
//	                  a minute) sends what it says was decided and perhaps not sent. Where
//	                  that is too long ago for the id to be remembered, and the ledger has
//	                  no such job, the tick is skipped: it may have been run
//
// So there is one job per tick, however many processes run the schedule, how often
// they are killed, and which way the clock jumps: ticks up to the latest that was
// decided are never looked at again. A clock that was ahead therefore stops a schedule
// until that time has come; its trouble says so. Ticks that were not run are counted,
// and the last of them is kept with its reason.
//
// What a tick that is late by more than a few seconds does is said by Missed; what one
// does whose former job has not finished, by Overlap.
//
// Times of a cron text are local times of its zone. Where clocks are put forward, a
// time that does not exist is taken for the next moment that does, once. Where they are
// put back, a time that exists twice is the first of the two. A cron text whose hour is
// every one of the day (*) goes on evenly instead: what it names exists in each hour
// that passes. Every is elapsed time and knows no zone.
//
// It refuses to run jobs, to poll (there is one timer, for the earliest tick; what other
// processes changed is read every 30 s), and to be exact to less than a second.
package schedule
