package api

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// issued are secrets that this server has given out, by their hashes: each stands for a
// value until its time. All together they are bounded, and so are those of one owner,
// whose oldest ends for a further one: who asks again and again shuts out nobody else.
type issued[T any] struct {
	what  string // for the error
	most  int
	each  int // of one owner
	mu    sync.Mutex
	given map[[sha256.Size]byte]issue[T]
}

type issue[T any] struct {
	owner   string
	expires time.Time
	value   T
}

func newIssued[T any](what string, most, each int) *issued[T] {
	return &issued[T]{what: what, most: most, each: each, given: map[[sha256.Size]byte]issue[T]{}}
}

// add gives out a secret.
func (s *issued[T]) add(owner string, value T, expires, now time.Time) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(owner, now)
	if len(s.given) >= s.most {
		return "", forebay.Errorf(forebay.CodeLimited, "", "%d %s are out, the most that can be", len(s.given), s.what)
	}
	text := rand.Text()
	s.given[sha256.Sum256([]byte(text))] = issue[T]{owner, expires, value}
	return text, nil
}

// makeRoom drops what has had its time, where there are many, and the oldest of an owner
// who has as many as one may.
func (s *issued[T]) makeRoom(owner string, now time.Time) {
	if len(s.given) < min(s.each, s.most) {
		return
	}
	n := 0
	var oldest [sha256.Size]byte
	var ends time.Time
	for sum, one := range s.given {
		if !now.Before(one.expires) {
			delete(s.given, sum)
			continue
		}
		if one.owner != owner {
			continue
		}
		if n++; ends.IsZero() || one.expires.Before(ends) {
			oldest, ends = sum, one.expires
		}
	}
	if n >= s.each {
		delete(s.given, oldest)
	}
}

// find tells what a secret stands for now.
func (s *issued[T]) find(text string, now time.Time) (value T, expires time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.given[sha256.Sum256([]byte(text))]
	return one.value, one.expires, ok && now.Before(one.expires)
}

// end forgets a secret.
func (s *issued[T]) end(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.given, sha256.Sum256([]byte(text)))
}

// take is find and end in one: of several who show it, one has it.
func (s *issued[T]) take(text string, now time.Time) (value T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256([]byte(text))
	one, ok := s.given[sum]
	delete(s.given, sum)
	return one.value, ok && now.Before(one.expires)
}
