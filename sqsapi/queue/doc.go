// Package queue is what a queue of SQS means, on an engine of Forebay: the 23 actions
// with their limits, attributes, order, dead-letter queues and move tasks.
//
// It promises what AWS SQS was seen to do, durably: what Send answered survives a
// crash, and so do leases (visibility), receive counts and the queues themselves.
//
// It refuses to speak a protocol or to know who asks: package sqsapi does. Policies
// are stored and given back, not evaluated.
package queue
