package sink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/sink"
)

// script is a database whose answers a test writes down; the sub-packages test
// with real ones. It is here for what time does, in a bubble of synctest.
type script struct {
	write func(events []event.Event) error
	check func() error
	times []time.Time // of the writes
	sizes []int
	order []string
}

func (s *script) Write(ctx context.Context, events []event.Event) (int, error) {
	s.times, s.sizes = append(s.times, time.Now()), append(s.sizes, len(events))
	if err := s.write(events); err != nil {
		return 0, err
	}
	for i := range events {
		s.order = append(s.order, events[i].ID)
	}
	return len(events), nil
}

func (s *script) Check(context.Context) error { return s.check() }

func (s *script) Explain(_ context.Context, e *event.Event, err error) forebay.Cause {
	return forebay.Cause{Code: "X", Detail: map[string]string{"id": e.ID}}
}

func deliveries(t *testing.T, n int) []forebay.Delivery {
	t.Helper()
	ds := make([]forebay.Delivery, n)
	for i := range ds {
		e := event.Event{ID: fmt.Sprint(i), Type: "t", Payload: []byte(`{}`), ReceivedAt: time.Now()}
		b, err := e.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		ds[i].Payload = b
	}
	return ds
}

func failing(times int, err error) func([]event.Event) error {
	return func([]event.Event) error {
		if times--; times >= 0 {
			return err
		}
		return nil
	}
}

func TestPauseGrowsAndIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		var states []sink.State
		db := &script{write: failing(12, errDown)}
		w := sink.NewWriter(db, sink.Config{
			Logger:  slog.New(slog.NewTextHandler(&text, nil)),
			OnState: func(s sink.State) { states = append(states, s) },
		})
		if errs := w.HandleBatch(t.Context(), deliveries(t, 3)); errs != nil {
			t.Fatal(errs)
		}
		for i := 1; i < len(db.times); i++ {
			most := min(100*time.Millisecond<<(i-1), 15*time.Second)
			if got := db.times[i].Sub(db.times[i-1]); got < most/2 || got > most {
				t.Errorf("wait %d was %s, expected %s to %s", i, got, most/2, most)
			}
		}
		if len(db.times) != 13 || !reflect.DeepEqual(db.order, []string{"0", "1", "2"}) {
			t.Errorf("%d writes, order %v", len(db.times), db.order)
		}
		if strings.Count(text.String(), "\n") != 2 || len(states) != 2 || !states[0].Paused || states[1].Paused ||
			states[0].Reason != errDown.Error() {
			t.Errorf("states %+v, log:\n%s", states, &text)
		}
	})
}

func TestContextEndsInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &script{write: failing(1<<30, errDown)}
		var seen sink.Batch
		w := sink.NewWriter(db, sink.Config{Observe: func(b sink.Batch) { seen = b }})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(forebay.ErrDraining) })
		errs := w.HandleBatch(ctx, deliveries(t, 5))
		for _, err := range errs {
			if !errors.Is(err, forebay.ErrDraining) {
				t.Errorf("error %v", err)
			}
		}
		if len(errs) != 5 || seen.Left != 5 || seen.Took != time.Minute || !w.State().Paused {
			t.Errorf("%d errors, observed %+v", len(errs), seen)
		}
	})
}

// While the database is away a shutdown need not wait for it, nor for the end of
// the drain deadline.
func TestDrainEndsAPauseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sink.NewWriter(&script{write: failing(1<<30, errDown)}, sink.Config{})
		draining := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(draining) })
		start := time.Now()
		errs := w.HandleBatch(forebay.WithDraining(t.Context(), draining), deliveries(t, 3))
		if took := time.Since(start); took != time.Minute || len(errs) != 3 {
			t.Errorf("returned after %s with %d errors, expected a minute and 3", took, len(errs))
		}
		for _, err := range errs {
			if !errors.Is(err, forebay.ErrDraining) {
				t.Errorf("error %v", err)
			}
		}
	})
}

// A batch that is always too slow as a whole is written in halves, in order.
func TestSlowBatchIsHalved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &script{write: func(events []event.Event) error {
			if len(events) > 30 {
				return fmt.Errorf("too slow: %w", context.DeadlineExceeded)
			}
			return nil
		}}
		w := sink.NewWriter(db, sink.Config{})
		if errs := w.HandleBatch(t.Context(), deliveries(t, 100)); errs != nil {
			t.Fatal(errs)
		}
		if want := []int{100, 100, 50, 50, 25, 25, 50, 50, 25, 25}; !reflect.DeepEqual(db.sizes, want) {
			t.Errorf("sizes %v, want %v", db.sizes, want)
		}
		for i, id := range db.order {
			if id != fmt.Sprint(i) {
				t.Fatalf("order %v", db.order)
			}
		}
	})
}

// An error of no known kind is the database's fault as long as it refuses a row of
// our own too, and the row's when not. The doubt costs its tries once per batch.
func TestUnknownError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unknown := &sink.Refused{Err: errors.New("what is this")}
		checks := 0
		db := &script{
			write: func(events []event.Event) error {
				for i := range events {
					if events[i].ID == "5" || events[i].ID == "60" {
						return unknown
					}
				}
				return nil
			},
			check: func() error {
				if checks++; checks < 6 {
					return errDown
				}
				return nil
			},
		}
		w := sink.NewWriter(db, sink.Config{Name: "db"})
		errs := w.HandleBatch(t.Context(), deliveries(t, 100))
		for i, err := range errs {
			if (err != nil) != (i == 5 || i == 60) {
				t.Errorf("row %d: %v", i, err)
			}
		}
		if checks != 6 || forebay.IsPermanent(errs[5]) {
			t.Errorf("%d checks, permanent %v", checks, forebay.IsPermanent(errs[5]))
		}
		cause := forebay.CauseOf(errs[5], time.Now())
		if cause.Code != "X" || cause.Detail["id"] != "5" || cause.Message != "db: what is this" {
			t.Errorf("cause %+v", cause)
		}
	})
}

func TestUndecodableRowTouchesItselfOnly(t *testing.T) {
	db := &script{write: failing(0, nil)}
	w := sink.NewWriter(db, sink.Config{})
	ds := deliveries(t, 10)
	ds[3].Payload = []byte(`{"eventId":`)
	ds[4].Payload = nil
	errs := w.HandleBatch(t.Context(), ds)
	for i, err := range errs {
		if bad := i == 3 || i == 4; bad != forebay.IsPermanent(err) || !bad && err != nil {
			t.Errorf("row %d: %v", i, err)
		}
	}
	if len(db.order) != 8 {
		t.Errorf("%d rows written", len(db.order))
	}
}

func TestUpkeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		w := sink.NewWriter(&script{}, sink.Config{Logger: slog.New(slog.NewTextHandler(&text, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var at []time.Duration
		w.Upkeep(ctx, func(context.Context) error {
			at = append(at, time.Since(start))
			switch len(at) {
			case 2, 3:
				return errDown
			case 5:
				cancel()
			}
			return nil
		})
		want := []time.Duration{0, 60 * time.Minute, 61 * time.Minute, 62 * time.Minute, 122 * time.Minute}
		if !reflect.DeepEqual(at, want) || strings.Count(text.String(), "\n") != 1 {
			t.Errorf("at %v, want %v; log:\n%s", at, want, &text)
		}
	})
}
