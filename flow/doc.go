// Package flow is graphs of steps: the file that describes one, what is wrong with
// it, and the decisions of a run.
//
// # What a run is
//
// A flow is a graph. An edge leads to a step from each step that it needs, from a
// branch or parallel that names it, and from a step whose failure goes to it
// (on_failure: goto). When a step has ended, each edge from it is taken or not:
//
//	the step               needs    branch        goto
//	completed              taken    its case      not
//	failed, and skipped    taken    not           not
//	skipped by hand        taken    not           not
//	not wanted, cancelled  not      not           not
//	failed, with a goto    not      not           taken
//
// A step begins when all edges to it are decided and one of them, at least, is
// taken; if none is, or its when is false, it is not wanted, and its own edges are not
// taken. So what follows a branch that was not chosen is left out, up to where it
// meets a branch that was. A join counts: it completes as soon as all, any or N of
// its edges are taken, and is not wanted once that cannot be any more.
//
// A goto to a step further on is such an edge. A goto to an earlier one begins that
// step, and all that follow it, a further round, at most max times.
//
// A run fails when a step fails whose on_failure is fail: nothing new begins, what
// waits for a time or an event is cancelled, what runs may end; then the
// compensations of the completed steps run one by one, the last completed first. When
// the dead letter of a failed step is replayed and ends well, before anything was
// undone, the run goes on from there.
//
// # Ids
//
// The job of a step is <run>/<step>, in a further round <run>/<step>@<round>, of an
// item of a for_each that and /<index>, of a compensation that and ~undo. They follow
// from the state alone, so that sending again is harmless.
//
// # Promises and refusals
//
// All is pure: no I/O, no goroutine, no clock; times come in as values. Parse tells
// all problems at once, with code, place and a sentence. Advance never leaves a run
// that nothing drives: Waiting names what it waits for. It refuses what could not be
// bounded: a wait without timeout, a goto back without max, a context that grows.
package flow
