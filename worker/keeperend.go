package worker

import "time"

// unsettled gives those of items, none of which has begun, that have no verdict
// yet. From now on they have.
func (k *keeper) unsettled(items []*item) []*item {
	if len(items) == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	rest := make([]*item, 0, len(items))
	for _, it := range items {
		if !it.settled {
			it.settled = true
			rest = append(rest, it)
		}
	}
	return rest
}

// end ends the items that are meant: those in work through their handlers, the
// others at once.
func (k *keeper) end(meant func(*item) bool, cause error) {
	var works []*work
	var refused []*item
	k.mu.Lock()
	for it := range k.held {
		switch {
		case !meant(it):
		case it.work != nil:
			works = append(works, it.work)
		case !it.settled:
			it.settled = true
			refused = append(refused, it)
		}
	}
	k.mu.Unlock()
	for _, w := range works {
		k.stopWork(w, cause)
	}
	for _, it := range refused {
		k.refuse(it, cause)
	}
}

// hurry renews all at once, to hear of cancellations that were missed.
func (k *keeper) hurry() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for it := range k.held {
		it.due = now
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// voice of a job at hand; nil: it is not here, or has none.
func (k *keeper) voice(job string) *voice {
	k.mu.Lock()
	defer k.mu.Unlock()
	for it := range k.held {
		if it.d.ID == job && it.work != nil {
			return it.voice
		}
	}
	return nil
}
