package redis

import "sync"

// plainQueues remembers of which queues the scripts for plain messages (lua/plain) could
// not hand anything out, so that those are not asked in vain each time.
type plainQueues struct {
	mu   sync.Mutex // guards skip
	skip map[string]int
}

// plainAgain is after how many receives of a queue they are tried again.
const plainAgain = 50

func (p *plainQueues) likely(queue string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.skip[queue]
	switch {
	case n > 1:
		p.skip[queue] = n - 1
	case n == 1:
		delete(p.skip, queue)
	}
	return n == 0
}

func (p *plainQueues) not(queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.skip == nil {
		p.skip = make(map[string]int)
	}
	p.skip[queue] = plainAgain
}
