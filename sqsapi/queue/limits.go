package queue

import "time"

// limits are the numbers that requests are held to. The strict ones are those of
// AWS. Wide ones go as far as the engine does:
//
//	                          strict        wide
//	entries of a batch        10            1,000
//	messages of a receive     10            1,000
//	delay                     15 minutes    365 days
//	wait of a receive         20 seconds    5 minutes
//	retention                 14 days       365 days
//	bytes of a batch          1 MiB         8 MiB
//	in flight, standard       120,000       no bound
//	messages moved a second   500           10,000
//
// What belongs to the message is the same for both: 1 MiB of body and attributes, ten
// attributes, twelve hours of visibility.
type limits struct {
	entries   int // of a batch
	receive   int // messages of one receive
	delay     int // seconds
	wait      int // seconds
	retention int // seconds
	bytes     int // of a batch
	inFlight  int64
	moves     int // a second
}

const (
	maxMessageBytes  = 1 << 20
	minMessageBytes  = 1 << 10
	maxAttributes    = 10
	maxVisibility    = 43_200
	dedupWindow      = 5 * time.Minute
	restAfterDelete  = 60 * time.Second // until the name of a deleted queue may be used again
	restAfterPurge   = 60 * time.Second
	maxTags          = 50
	maxListed        = 1000 // names of one listing
	maxTimeSeconds   = 1 << 31
	defaultRetention = 345_600
	defaultVisible   = 30
)

func limitsOf(wide bool) limits {
	if wide {
		return limits{entries: 1000, receive: 1000, delay: 31_536_000, wait: 300, retention: 31_536_000, bytes: 8 << 20, moves: 10_000}
	}
	return limits{entries: 10, receive: 10, delay: 900, wait: 20, retention: 1_209_600, bytes: maxMessageBytes, inFlight: 120_000, moves: 500}
}
