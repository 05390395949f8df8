package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// A store that refuses some of its writes, between restarts: what was refused was
// not done, nothing is lost, nothing is held by two, groups keep their order.
func TestRefusedWrites(t *testing.T) {
	seed := rand.Uint64()
	for round := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			f := &refused{t: t, rng: rand.New(rand.NewPCG(seed, round)), there: map[string]bool{}, dead: map[string]bool{}, last: map[string]int{}}
			f.path = filepath.Join(t.TempDir(), "forebay.db")
			f.open()
			for range 250 {
				f.step()
				if kept, walked := f.e.Oldest("q"); kept != walked {
					t.Fatalf("the oldest outside the lanes is from %d, kept is %d", walked, kept)
				}
			}
			f.finish()
			if t.Failed() {
				t.Logf("seed %d, round %d: %v", seed, round, f.did)
			}
		})
	}
}

type refused struct {
	t    *testing.T
	rng  *rand.Rand
	e    *sqlite.Engine
	path string
	did  []string

	fault bool // some write is refused
	sent  int
	there map[string]bool // not ended
	dead  map[string]bool
	held  []heldUntil
	last  map[string]int // by group, of those that came in the end
}

type heldUntil struct {
	forebay.Delivery
	end time.Time
}

func (f *refused) open() {
	f.e = mustOpen(f.t, sqlite.Config{Path: f.path, Durability: sqlite.DurabilityProcess})
	if err := f.e.SetLimits(context.Background(), "q", engine.QueueLimits{KeyActive: 3}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *refused) note(format string, args ...any) {
	f.did = append(f.did, fmt.Sprintf(format, args...))
}

func (f *refused) step() {
	switch k := f.rng.IntN(40); {
	case k < 5:
		f.toggle()
	case k < 14:
		f.send()
	case k < 24:
		f.receive(1 + f.rng.IntN(5))
	case k < 35:
		f.settle()
	case k == 35:
		f.purge()
	case k == 36:
		f.replay()
	case k == 37:
		f.reopen()
	default:
		<-time.After(time.Duration(1+f.rng.IntN(2)) * time.Second)
		f.note("time passes")
	}
}

// toggle begins to refuse one kind of write, or ends it.
func (f *refused) toggle() {
	if f.fault {
		f.exec("DROP TRIGGER refuse")
	} else {
		writes := []string{
			"INSERT ON again", "INSERT ON dead", "INSERT ON part", "INSERT ON block", "INSERT ON dedup", "INSERT ON lease",
			"DELETE ON again", "DELETE ON part", "DELETE ON block", "DELETE ON lease", "UPDATE ON again", "UPDATE ON lease",
		}
		write := writes[f.rng.IntN(len(writes))]
		f.exec("CREATE TRIGGER refuse BEFORE " + write + " BEGIN SELECT RAISE(FAIL, 'refused'); END")
		f.note("refuse %s", write)
	}
	f.fault = !f.fault
}

func (f *refused) exec(sql string) {
	if err := f.e.Exec(sql); err != nil {
		f.t.Fatal(err)
	}
}

func (f *refused) send() {
	var msgs []forebay.Message
	for range 1 + f.rng.IntN(4) {
		f.sent++
		m := forebay.Message{ID: fmt.Sprint("m", f.sent), Queue: "q", Priority: forebay.At(4 + f.rng.IntN(2))}
		if f.rng.IntN(4) == 0 {
			m.LimitKey = fmt.Sprint("k", f.rng.IntN(2))
		}
		if f.rng.IntN(2) == 0 {
			m.Group = fmt.Sprint("g", f.rng.IntN(3))
		}
		if f.rng.IntN(5) == 0 {
			m.NotBefore = time.Now().Add(time.Duration(f.rng.IntN(4)) * time.Second)
		}
		msgs = append(msgs, m)
	}
	_, err := f.e.Send(context.Background(), msgs)
	f.note("send up to m%d: %v", f.sent, err)
	for _, m := range msgs {
		if err == nil {
			f.there[m.ID] = true
		}
	}
}

func (f *refused) receive(limit int) {
	lease := time.Duration(1+f.rng.IntN(4)) * time.Second
	ds, err := f.e.Receive(context.Background(), engine.Receive{Queue: "q", Max: limit, Lease: lease})
	f.note("receive: %d, %v", len(ds), err)
	for _, d := range ds {
		if !f.there[d.ID] || f.holds(d.ID) {
			f.t.Errorf("%s came, there: %v, held: %v", d.ID, f.there[d.ID], f.holds(d.ID))
		}
		f.held = append(f.held, heldUntil{d, time.Now().Add(lease)})
	}
}

func (f *refused) holds(id string) bool {
	return slices.ContainsFunc(f.held, func(h heldUntil) bool { return h.ID == id && time.Now().Before(h.end) })
}

func (f *refused) settle() {
	if len(f.held) == 0 {
		return
	}
	h := f.held[f.rng.IntN(len(f.held))]
	s := forebay.Settlement{Receipt: h.Receipt, Verdict: forebay.Verdict(1 + f.rng.IntN(4))}
	if s.Verdict == forebay.Retry || s.Verdict == forebay.Release {
		s.After = time.Duration(f.rng.IntN(3)) * time.Second
	}
	errs, err := f.e.Settle(context.Background(), []forebay.Settlement{s})
	f.note("%s %s: %v %v", s.Verdict, h.ID, errs, err)
	if err != nil || errs[0] != nil {
		return
	}
	f.held = slices.DeleteFunc(f.held, func(other heldUntil) bool { return other.Receipt == h.Receipt })
	if s.Verdict == forebay.Ack || s.Verdict == forebay.Dead {
		delete(f.there, h.ID)
	}
	f.dead[h.ID] = s.Verdict == forebay.Dead
}

func (f *refused) purge() {
	dropped, err := f.e.Purge(context.Background(), "q")
	f.note("purge: %d, %v", dropped, err)
	for id := range f.there {
		if err == nil && !f.holds(id) {
			delete(f.there, id)
			dropped--
		}
	}
	if err == nil && dropped != 0 {
		f.t.Errorf("purge dropped %d too many", dropped)
	}
}

func (f *refused) replay() {
	letters, err := f.e.Dead(context.Background(), engine.DeadQuery{})
	if err != nil {
		f.t.Error(err)
	}
	for _, d := range letters {
		errs, err := f.e.Replay(context.Background(), []int64{d.Seq})
		f.note("replay %s: %v %v", d.Message.ID, errs, err)
		if err == nil && errs[0] == nil {
			f.dead[d.Message.ID], f.there[d.Message.ID] = false, true
			f.last[d.Message.Group] = f.sent + 1000 // its order is a new one
		}
	}
}

// reopen restarts the engine. What it has to write at start is not refused.
func (f *refused) reopen() {
	if f.fault {
		f.toggle()
	}
	if err := f.e.Close(); err != nil {
		f.t.Error(err)
	}
	f.open()
	f.held = nil
	f.note("reopen")
}

// finish wants all that did not end, once.
func (f *refused) finish() {
	ctx := context.Background()
	if f.fault {
		f.toggle()
	}
	<-time.After(time.Hour)
	s, err := f.e.Stats(ctx, "q")
	dead := 0
	for _, yes := range f.dead {
		if yes {
			dead++
		}
	}
	if err != nil || s[0].Waiting != int64(len(f.there)) || s[0].Active+s[0].Delayed != 0 || s[0].Dead != int64(dead) {
		f.t.Errorf("%+v, %v; want %d waiting and %d dead", s, err, len(f.there), dead)
	}
	for ds := receive(f.t, f.e, 10); len(ds) > 0; ds = receive(f.t, f.e, 10) {
		for _, d := range ds {
			n := 0
			fmt.Sscanf(d.ID, "m%d", &n)
			if !f.there[d.ID] || d.Group != "" && n < f.last[d.Group] && f.last[d.Group] <= f.sent {
				f.t.Errorf("%s came in the end, there: %v, after m%d of its group", d.ID, f.there[d.ID], f.last[d.Group])
			}
			delete(f.there, d.ID)
			f.last[d.Group] = max(n, f.last[d.Group])
		}
		settle(f.t, f.e, forebay.Ack, ds...)
	}
	if len(f.there) > 0 {
		f.t.Errorf("lost: %v", f.there)
	}
	if err := f.e.Close(); err != nil {
		f.t.Error(err)
	}
}
