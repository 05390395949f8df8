package queue

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// firsts remembers when messages were received first, for those that come again. It
// holds at most two tables of firstsMost messages; what it has forgotten, or a former
// process knew, is told as received first when it is seen next.
type firsts struct {
	seed maphash.Seed

	mu       sync.Mutex
	now, old map[uint64]int64 // by hash of the id: ms
}

const firstsMost = 100_000

func newFirsts() *firsts {
	return &firsts{seed: maphash.MakeSeed(), now: map[uint64]int64{}}
}

// see notes messages that are handed out.
func (f *firsts) see(ds []forebay.Delivery, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range ds {
		key := maphash.String(f.seed, ds[i].ID)
		if _, known := f.find(key); known {
			continue
		}
		if len(f.now) >= firstsMost {
			f.now, f.old = make(map[uint64]int64, firstsMost), f.now
		}
		f.now[key] = now.UnixMilli()
	}
}

func (f *firsts) find(key uint64) (int64, bool) {
	if at, is := f.now[key]; is {
		return at, true
	}
	at, is := f.old[key]
	return at, is
}

// of tells when a message was received first.
func (f *firsts) of(id string, now time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, is := f.find(maphash.String(f.seed, id)); is {
		return time.UnixMilli(at)
	}
	return now
}
