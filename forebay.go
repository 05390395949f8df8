// Package forebay holds the words of the product: message, delivery, settlement,
// dead letter, error code. Every other package speaks in these types.
//
// It promises to stay small and inert: it imports the standard library only,
// does no I/O, starts no goroutine and keeps no state.
//
// It refuses to hold policy. How often a message is retried is the business of
// package broker; how it is stored is the business of an engine.
package forebay

import "time"

// Limits of one message. They are the same from the HTTP edge to the store, so
// that nothing that one part accepts is refused by the next.
const (
	MaxIDBytes      = 128     // a message id, dedup key, group or limit key
	MaxQueueBytes   = 80      // a queue name, as on SQS
	MaxKindBytes    = 200     // a kind; fifty characters of any script fit
	MaxHeaders      = 32      // headers of one message
	MaxHeaderBytes  = 4096    // names and values of all headers together
	MaxPayloadBytes = 1 << 20 // a payload
	MaxDelay        = 365 * 24 * time.Hour
)

// Defaults that hold wherever a user has set nothing.
const (
	DefaultLease       = 30 * time.Second
	DefaultAttempts    = 10 // failed attempts before a message is a dead letter
	DefaultDeliveries  = 20 // hand-outs before a message is poison, at least; twice the attempts where those are more
	DefaultDedupWindow = 24 * time.Hour
)
