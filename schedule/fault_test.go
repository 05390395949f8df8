package schedule_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/schedule"
)

// faulty is the embedded engine, whose calls fail when they are told to.
type faulty struct {
	*sqlite.Engine
	send, sent, put, wrote atomic.Bool // fail before or after it is done
}

var errFault = forebay.Errorf(forebay.CodeUnavailable, "test", "no answer")

func (f *faulty) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if f.send.Load() {
		return nil, errFault
	}
	r, err := f.Engine.Send(ctx, msgs)
	if f.sent.Load() {
		return nil, errFault
	}
	return r, err
}

func (f *faulty) PutDocument(ctx context.Context, d engine.Document) (engine.Document, error) {
	if f.put.Load() {
		return engine.Document{}, errFault
	}
	d, err := f.Engine.PutDocument(ctx, d)
	if f.wrote.Load() {
		return engine.Document{}, errFault
	}
	return d, err
}

// bare can do no more than move messages.
type bare struct{ engine.Engine }

func (s *stand) use(e engine.Engine) {
	s.engine = e
	s.broker = must[*broker.Broker](s.t)(broker.New(e, broker.Config{Now: s.now}))
	s.Scheduler = must[*schedule.Scheduler](s.t)(schedule.New(schedule.Config{Broker: s.broker, Now: s.now}))
}

func beginFaulty(t *testing.T, onFile bool) (*stand, *faulty) {
	f := &faulty{}
	s := begin(t)
	s.close()
	s.wrap = func(e *sqlite.Engine) engine.Engine { f.Engine = e; return f }
	if onFile {
		s.path = t.TempDir() + "/queue.db"
	}
	s.open()
	return s, f
}

// Whatever call fails, and whether it had been done, the tick has one job, soon.
func TestFailuresDoubleNothingAndLoseNothing(t *testing.T) {
	for name, set := range map[string]func(f *faulty, on bool){
		"before the decision is stored": func(f *faulty, on bool) { f.put.Store(on) },
		"after it":                      func(f *faulty, on bool) { f.wrote.Store(on) },
		"before the job is sent":        func(f *faulty, on bool) { f.send.Store(on) },
		"after it is":                   func(f *faulty, on bool) { f.sent.Store(on) },
	} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", and dies ", dies), func(t *testing.T) {
				t.Parallel()
				noon(t, func(t *testing.T) {
					s, f := beginFaulty(t, true)
					s.put(schedule.Definition{Name: "s", Cron: "*/10 * * * *"})
					time.Sleep(9 * minute)
					set(f, true)
					time.Sleep(2 * minute)
					if v := s.get("s"); !strings.Contains(v.Trouble, "no answer") && !strings.HasPrefix(name, "after it") {
						t.Errorf("the trouble is %q", v.Trouble)
					}
					if dies {
						s.close()
					}
					set(f, false)
					if dies {
						s.open()
						time.Sleep(time.Second)
					} else {
						time.Sleep(time.Minute)
					}
					want(t, "ticks", s.ticks("s"), "[12:10:00]")
					v := s.get("s")
					want(t, "state", words(v.Count, v.Skipped, len(v.Pending), v.Trouble), "1 0 0 ")
					time.Sleep(10 * minute)
					want(t, "goes on", s.ticks("s"), "[12:10:00 12:20:00]")
				})
			})
		}
	}
}

// Between the decision and its confirmation the process dies, and nobody is there for
// longer than ids are remembered.
func TestWhatIsUncertainIsNotRunTwice(t *testing.T) {
	for name, sent := range map[string]bool{"it was sent": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noon(t, func(t *testing.T) {
				s, f := beginFaulty(t, true)
				s.put(schedule.Definition{Name: "s", Cron: "0 0 1 * *", Job: schedule.Template{Queue: "work", Kind: "do"}})
				time.Sleep(36*time.Hour - time.Minute)
				f.send.Store(!sent)
				f.sent.Store(sent)
				time.Sleep(2 * minute)
				s.close()
				f.send.Store(false)
				f.sent.Store(false)
				time.Sleep(48 * time.Hour)
				s.open()
				time.Sleep(time.Second)
				v := s.get("s")
				jobs := words(len(s.jobs("s")), v.Count, v.Skipped, len(v.Pending))
				if sent {
					want(t, "jobs", jobs, "1 1 0 0")
					return
				}
				want(t, "jobs", jobs, "0 0 1 0")
				want(t, "code", words(v.Skip.Code, v.Skip.Reason), "uncertain it was decided 48h1m0s ago, and may have been run then")
			})
		})
	}
}

func TestAJobThatIsRefusedIsSkippedAndTold(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		v := s.put(schedule.Definition{Name: "s", Cron: "* * * * *"})
		d := must[engine.Document](t)(s.broker.Document(t.Context(), "schedule", "s"))
		d.Value = []byte(strings.Replace(string(d.Value), `"queue":"work"`, `"queue":"no queue"`, 1))
		must[engine.Document](t)(s.broker.PutDocument(t.Context(), d)) // as another version would
		time.Sleep(2*minute + time.Second)
		v = s.get("s")
		want(t, "state", words(v.Count, v.Skipped, v.Skip.Code, v.Last.Code, v.Last.Job), "0 2 invalid invalid ")
		if !strings.Contains(v.Skip.Reason, `"no queue"`) {
			t.Errorf("the reason is %q", v.Skip.Reason)
		}
	})
}

// What cannot be read stands still by itself, is told, and stops nothing else.
func TestADamagedScheduleStopsNoOther(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		s.put(schedule.Definition{Name: "b", Cron: "* * * * *"})
		for key, value := range map[string]string{"a": "{", "c": `{"v":99}`, "d": `{"v":1,"definition":{"name":"d","cron":"x"},"state":{"since":"2026-01-01T00:00:00Z","after":"2026-01-01T00:00:00Z"}}`} {
			must[engine.Document](t)(s.broker.PutDocument(t.Context(), engine.Document{Collection: "schedule", Key: key, Value: []byte(value)}))
		}
		time.Sleep(2*minute + time.Second)
		want(t, "the other", s.ticks("b"), "[12:01:00 12:02:00]")
		for _, v := range must[[]schedule.Schedule](t)(s.List(t.Context(), "", 10)) {
			if (v.Trouble == "") != (v.Name == "b") {
				t.Errorf("%s: trouble %q", v.Name, v.Trouble)
			}
		}
		want(t, "delete", s.Delete(t.Context(), "a", engine.AnyRev), nil)
	})
}

// Two schedulers, as of two processes: one job per tick, and each sees what the other
// was told.
func TestTwoSchedulersAreAsOne(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		other := must[*schedule.Scheduler](t)(schedule.New(schedule.Config{Broker: must[*broker.Broker](t)(broker.New(s.engine, broker.Config{Now: s.now})), Now: s.now}))
		stop := run(t, other)
		defer func() { stop() }()
		synctest.Wait()
		for i := range 20 {
			s.put(schedule.Definition{Name: fmt.Sprint("s", i), Cron: "* * * * *", Overlap: []schedule.Overlap{"allow", "skip"}[i%2]})
		}
		time.Sleep(10*minute + time.Second)
		for i := range 20 {
			v, n := s.get(fmt.Sprint("s", i)), []int{10, 1}[i%2]
			want(t, "jobs", len(s.ticks(v.Name)), n)
			want(t, "state", words(v.Count, v.Count+v.Skipped, len(v.Pending), v.Trouble), words(n, 10, 0, ""))
		}
		want(t, "delete", s.Delete(t.Context(), "s0", engine.AnyRev), nil)
		s.put(schedule.Definition{Name: "s2", Cron: "*/20 * * * *"})
		s.stop() // the other goes on alone, with what it was not told
		s.stop = func() {}
		time.Sleep(minute)
		want(t, "deleted", len(s.ticks("s0")), 10)
		time.Sleep(19 * minute)
		want(t, "changed", s.ticks("s2")[10:], "[12:20:00]")
		want(t, "as before", len(s.ticks("s4")), 30)
	})
}

// What a process decided and cannot send, another one sends.
func TestAnotherProcessTakesOver(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s, f := beginFaulty(t, false)
		s.put(schedule.Definition{Name: "s", Cron: "0 * * * *"})
		time.Sleep(59 * minute)
		f.send.Store(true)
		time.Sleep(minute + time.Second)
		s.stop()
		s.stop = nil
		f.send.Store(false)
		want(t, "pending", len(s.get("s").Pending), 1)
		b := must[*broker.Broker](t)(broker.New(f.Engine, broker.Config{Now: s.now}))
		defer b.Close()
		other := must[*schedule.Scheduler](t)(schedule.New(schedule.Config{Broker: b, Now: s.now}))
		stop := run(t, other)
		defer stop()
		time.Sleep(time.Second)
		want(t, "sent", s.ticks("s"), "[13:00:00]")
		want(t, "pending then", len(s.get("s").Pending), 0)
	})
}

// counting counts the calls of documents and jobs.
type counting struct {
	*sqlite.Engine
	lists, others atomic.Int64
}

func (c *counting) calls() string {
	s := fmt.Sprintf("%d of Documents", c.lists.Load())
	if n := c.others.Load(); n > 0 {
		s += fmt.Sprintf(", %d others", n)
	}
	return s
}

func (c *counting) Documents(ctx context.Context, collection, after string, limit int) ([]engine.Document, error) {
	c.lists.Add(1)
	return c.Engine.Documents(ctx, collection, after, limit)
}

func (c *counting) Document(ctx context.Context, collection, key string) (engine.Document, error) {
	c.others.Add(1)
	return c.Engine.Document(ctx, collection, key)
}

func (c *counting) PutDocument(ctx context.Context, d engine.Document) (engine.Document, error) {
	c.others.Add(1)
	return c.Engine.PutDocument(ctx, d)
}

func (c *counting) Job(ctx context.Context, id string) (forebay.Job, error) {
	c.others.Add(1)
	return c.Engine.Job(ctx, id)
}
