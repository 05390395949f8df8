package estimate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// stored is the form in which estimates outlive a process.
type stored struct {
	Version int           `json:"v"`
	Queues  []storedQueue `json:"queues"`
	Kinds   []storedKind  `json:"kinds"`
	Cover   Coverage      `json:"coverage"`
}

type storedQueue struct {
	Name  string  `json:"queue"`
	Pace  float64 `json:"pace"`
	Slots float64 `json:"slots"`
}

type storedKind struct {
	Queue   string `json:"queue"`
	Kind    string `json:"kind"`
	Samples int    `json:"samples"`
	Run     packed `json:"run"`
	Quick   packed `json:"quick"`
	Queued  packed `json:"queued"`
}

const version = 1

// Save gives what is known, in at most so many bytes: where that is not enough, the
// kinds with the fewest samples are left out. Jobs in flight are not kept.
func (e *Estimator) Save(most int) ([]byte, error) {
	s := e.snapshot()
	for {
		data, err := json.Marshal(s)
		if err != nil || len(data) <= most || len(s.Kinds) == 0 {
			return data, err
		}
		s.Kinds = s.Kinds[:len(s.Kinds)/2]
	}
}

func (e *Estimator) snapshot() stored {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := stored{Version: version, Cover: e.cover}
	for name, q := range e.queues {
		s.Queues = append(s.Queues, storedQueue{name, q.pace, q.slots})
	}
	for id, k := range e.kinds {
		s.Kinds = append(s.Kinds, storedKind{id.queue, id.kind, k.samples, k.run.pack(), k.quick.pack(), k.queued.pack()})
	}
	slices.SortFunc(s.Queues, func(a, b storedQueue) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Kinds, func(a, b storedKind) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind))
	})
	return s
}

// Load takes over what Save gave, in place of what is known of the same queues and
// kinds.
func (e *Estimator) Load(data []byte) error {
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("estimate: load: %w", err)
	}
	if s.Version != version {
		return fmt.Errorf("estimate: load: version %d is not known; %d is", s.Version, version)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cover = s.Cover
	for _, one := range s.Queues {
		q := e.queue(one.Name)
		q.pace, q.slots = max(0, one.Pace), max(0, one.Slots)
	}
	for _, one := range s.Kinds {
		k := e.kind(e.key(one.Queue, one.Kind))
		k.samples, k.as = max(0, one.Samples), 0
		k.run, k.quick, k.queued = one.Run.unpack(), one.Quick.unpack(), one.Queued.unpack()
	}
	return nil
}
