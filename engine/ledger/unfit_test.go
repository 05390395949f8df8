package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// foreign is a remote engine as SQS is without a redrive policy, which has what others sent.
// Beyond that it is the one of the stand.
type foreign struct {
	engine.Engine
	change func(m *forebay.Message) // what an engine of ours would not have taken
}

func (f *foreign) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	ds, err := f.Engine.Receive(ctx, r)
	for i := range ds {
		if ds[i].ID == "x1" {
			f.change(&ds[i].Message)
		}
	}
	return ds, err
}

func (f *foreign) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	var passed []forebay.Settlement
	var at []int
	errs := make([]error, len(ss))
	for i, s := range ss {
		if s.Verdict == forebay.Dead {
			errs[i] = forebay.Errorf(forebay.CodeUnsupported, "", "it has no redrive policy")
			continue
		}
		passed, at = append(passed, s), append(at, i)
	}
	told, err := f.Engine.Settle(ctx, passed)
	for n, e := range told {
		errs[at[n]] = e
	}
	return errs, err
}

// What cannot be a job, and what the remote engine does not keep as dead, is a dead letter
// here: once, with its body, its cause and what was cut; then it is gone there.
func TestWhatTheRemoteEngineDoesNotKeepAsDead(t *testing.T) {
	ten := make(map[string]string)
	for i := range 10 {
		ten[fmt.Sprint("attribute", i)] = strings.Repeat("x", 1000)
	}
	for name, c := range map[string]struct {
		change func(m *forebay.Message)
		id     string
		says   []string
		kept   int // headers, without the reason
		body   int
	}{
		"attributes too large": {func(m *forebay.Message) { m.Headers = ten }, "sent-x1",
			[]string{"the headers have 10100 bytes", `cut was: the attribute "attribute3" of 1000 bytes`, `"attribute9"`}, 3, 5},
		"a kind that is no text": {func(m *forebay.Message) { m.Kind = "a\tb" }, "sent-x1", []string{`cut was: the kind "a\tb"`}, 0, 5},
		"an id that is no text": {func(m *forebay.Message) { m.ID = "a\nb" },
			"sent-7e18f737", []string{`cut was: the id "a\nb"`}, 0, 5},
		"all of it": {func(m *forebay.Message) {
			m.Headers = map[string]string{"Forebay.Unfit": "of theirs", "": "x", "bad\x00": "x", "good": "x", "long": strings.Repeat("\x01", 5000)}
			m.Kind, m.Limits, m.Payload = strings.Repeat("é", 3000), forebay.Limits{Attempts: -1}, make([]byte, 3<<20)
		}, "sent-x1", []string{"the body after its first 1048576 of 3145728 bytes", "the kind ", "its limits", `"bad\x00"`, `the attribute "long" of 5000 bytes`}, 1, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *stand) {
				s.live(&foreign{s.remote, c.change}, 0)
				sendTo(s, s.remote, forebay.Message{ID: "x1", Queue: "q", Payload: []byte("hello")})
				s.send(job("a"))
				s.settle(forebay.Ack, 0, s.want(time.Second, "a")...)
				s.quiet()
				d := s.dead()
				if !strings.HasPrefix(d.Message.ID, c.id) || len(d.Message.Payload) != c.body || len(d.Message.Headers) != c.kept+1 {
					t.Errorf("id %q, body of %d bytes, headers %q", d.Message.ID, len(d.Message.Payload), d.Message.Headers)
				}
				for _, part := range c.says {
					if d.Cause.Code != "ledger" || !strings.Contains(d.Cause.Message, part) {
						t.Errorf("its cause is %q, %q; want %q in it", d.Cause.Code, d.Cause.Message, part)
					}
				}
				if j := s.job(d.Message.ID, forebay.StateDead); j.Deliveries != 0 || j.Attempts != 0 {
					t.Errorf("%d hand-outs and %d attempts of what was never begun", j.Deliveries, j.Attempts)
				}
			})
		})
	}
}

// A process that dies after the row is stored leaves a job that is unfit still.
func TestUnfitAfterADeath(t *testing.T) {
	inBubble(t, func(s *stand) {
		remote := &foreign{s.remote, func(m *forebay.Message) { m.Kind = "a\tb" }}
		s.live(remote, 0)
		sendTo(s, s.remote, forebay.Message{ID: "x1", Queue: "q", Payload: []byte("hello")})
		s.want(0) // it is received; Run has stored it, and nobody has asked since
		synctest.Wait()
		s.job("sent-x1", forebay.StateWaiting)
		s.live(remote, 0)
		s.quiet()
		s.dead()
	})
}

// Others do not say what is unfit.
func TestOthersDoNotSayWhatIsUnfit(t *testing.T) {
	inBubble(t, func(s *stand) {
		sendTo(s, s.remote, forebay.Message{ID: "x1", Queue: "q", Kind: "k", Headers: map[string]string{"Forebay.Unfit": "so they say", "b": "c"}})
		ds := s.want(time.Second, "sent-x1")
		if h := ds[0].Headers; len(h) != 1 || h["b"] != "c" {
			t.Errorf("its headers are %q", h)
		}
		s.settle(forebay.Ack, 0, ds...)
		s.quiet()
	})
}

// dead wants exactly one dead letter, here and not there.
func (s *stand) dead() forebay.DeadLetter {
	s.Helper()
	dead, err := s.rows.Dead(s.Context(), engine.DeadQuery{Queue: "q"})
	if err != nil || len(dead) != 1 {
		s.Fatalf("%d dead letters, %v: %+v", len(dead), err, dead)
	}
	if there, err := s.remote.Dead(s.Context(), engine.DeadQuery{}); err != nil || len(there) != 0 {
		s.Fatalf("the remote engine has dead letters %+v, %v", there, err)
	}
	return dead[0]
}
