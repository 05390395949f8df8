//go:build linux

// Command soak runs the real program for a long time under mixed load while it breaks
// what the program stands on, and proves from outside that nothing that was promised was broken.
//
// It promises: what it asks and what it is told goes through the public API and the database
// only; each finding names what was lost with its history; the seed that it prints gives the same
// load and the same faults in the same order (not the same interleaving: processes have a
// will of their own). It refuses to excuse: a fault that this machine cannot do is named as not
// done, and a run without a single finding is the only one that ends with 0.
//
// Three parts that know little of each other: producers and handlers (what goes in, and what
// works it) tell the book; the book knows rules and nothing of processes; a stand is the
// processes of one engine and what can be done to them.
package main
