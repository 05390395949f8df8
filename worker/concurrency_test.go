package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

// slow is a back end with some servers, each of which takes about 100 ms for a call;
// calls beyond them wait.
type slow struct {
	servers chan struct{}
	done    atomic.Int64
}

func newSlow(servers int) *slow { return &slow{servers: make(chan struct{}, servers)} }

func (b *slow) Handle(context.Context, forebay.Delivery) error {
	b.servers <- struct{}{}
	defer func() { <-b.servers }()
	<-time.After(50*time.Millisecond + rand.N(100*time.Millisecond))
	b.done.Add(1)
	return nil
}

// A worker finds by itself how many calls its back end takes, and again when that is another;
// it says so, within the bounds, and somebody may set it.
func TestConcurrencyTunesItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := sqlite.Open(sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := broker.New(e, broker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for part := range 13 {
			msgs := named(fmt.Sprint("m", part, "-"), 1000, "")
			for i := range msgs {
				msgs[i].Queue = queue
			}
			if results, err := b.Send(t.Context(), msgs); err != nil || results[0].Err != nil {
				t.Fatal(err, results)
			}
		}
		var now atomic.Pointer[slow]
		w, err := worker.New(b, worker.Config{Queue: queue, Auto: &worker.Concurrency{Max: 60}, Handler: worker.HandlerFunc(func(ctx context.Context, d forebay.Delivery) error {
			return now.Load().Handle(ctx, d)
		})})
		if err != nil {
			t.Fatal(err)
		}
		between := func(servers, least, most int) {
			t.Helper()
			back := newSlow(servers)
			now.Store(back)
			pass(25 * time.Second) // to find its way
			from := back.done.Load()
			pass(6 * time.Second)
			rate, full := float64(back.done.Load()-from)/6, float64(servers)*10
			if _, limit := w.Slots(); rate < 0.75*full || limit < least || limit > most {
				t.Errorf("%d servers: %.0f/s of %.0f, with a limit of %d", servers, rate, full, limit)
			}
		}
		now.Store(newSlow(20))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		between(20, 13, 32)
		between(5, 4, 13)
		between(12, 7, 22)
		if err := w.Tune(worker.Concurrency{Fixed: 3}); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		if busy, limit := w.Slots(); busy != 3 || limit != 3 {
			t.Errorf("set to 3, it is %d of %d", busy, limit)
		}
		if err := w.Tune(worker.Concurrency{Min: 5, Max: 4}); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("bounds that cross: %v", err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

type sqlState string

func (s sqlState) Error() string    { return "the database said " + string(s) }
func (s sqlState) SQLState() string { return string(s) }

// What says that it is too much lowers the limit; what a handler fails with by itself, and
// what is interrupted, does not.
func TestOnlyOverloadLowersTheConcurrency(t *testing.T) {
	t.Parallel()
	http := func(code string) error { return forebay.Because(forebay.Cause{Code: code}, errors.New(code)) }
	for name, c := range map[string]struct {
		err    error
		lowers bool
	}{
		"of its own": {errors.New("no such user"), false}, "for good": {forebay.Permanent(errors.New("no")), false},
		"snoozed": {forebay.Snooze(time.Second), false}, "422": {http("http_422"), false}, "a key twice": {sqlState("23505"), false},
		"Retry-After": {forebay.RetryAfter(time.Second, errors.New("later")), true}, "429": {http("http_429"), true}, "503": {http("http_503"), true},
		"too many connections": {fmt.Errorf("x: %w", sqlState("53300")), true}, "statement timeout": {sqlState("57014"), true},
		"timeout": {context.DeadlineExceeded, true}, "over a limit": {forebay.Errorf(forebay.CodeLimited, "", "over"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(s *stand) {
				s.send(named("m", 400, "")...)
				n := atomic.Int64{}
				s.run(worker.Config{Auto: &worker.Concurrency{Min: 2, Max: 10}, Handler: worker.HandlerFunc(func(context.Context, forebay.Delivery) error {
					<-time.After(50 * time.Millisecond)
					if n.Add(1)%2 == 0 {
						return c.err
					}
					return nil
				})})
				pass(3 * time.Second)
				if _, limit := s.worker.Slots(); (limit < 6) != c.lowers {
					t.Errorf("with %v the limit is %d", c.err, limit)
				}
				s.stop()
				<-s.ended
			})
		})
	}
}
