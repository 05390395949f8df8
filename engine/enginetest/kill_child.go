package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

const (
	killSenders   = 3
	killConsumers = 3
	killGroups    = 4 // of each sender
	killBacklog   = 2000
	killLease     = 10 * time.Minute // no lease may end by itself: the machine may be slow
	killKept      = 6 * time.Second  // but those that are kept, which the last round waits for
)

// child is the process that will be killed.
type child struct {
	e     engine.Engine
	facts *os.File
	ctx   context.Context
	round uint64
	open  atomic.Int64 // sent and not ended, about
	known []string
	jobs  bool // the engine keeps a ledger
	keeps bool // it keeps leases
	all   bool // all of them, since they outlive the process anyway
}

// killChild works until it is killed.
func killChild(t *testing.T, cfg KillConfig, dir string) {
	c := &child{facts: os.NewFile(factsFD, "facts"), round: setting(t, killRoundEnv, 0), keeps: cfg.Keeps, all: cfg.AllKept}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // should the parent have died
	defer cancel()
	c.ctx = ctx
	known, err := os.ReadFile(filepath.Join(dir, "known"))
	if err != nil {
		t.Fatal(err)
	}
	c.known = strings.Fields(string(known))
	if c.e, err = cfg.Open(filepath.Join(dir, "store")); err != nil {
		t.Fatalf("open: %v", err)
	}
	_, c.jobs = engine.As[engine.Jobs](c.e)
	c.say("ready")
	var wg sync.WaitGroup
	for i := range killSenders + killConsumers + 1 {
		rng := rand.New(rand.NewPCG(setting(t, killSeedEnv, 0)+c.round, uint64(i)))
		wg.Go(func() {
			var err error
			switch {
			case i < killSenders:
				err = c.send(i, rng)
			case i < killSenders+killConsumers:
				err = c.consume(i, rng)
			default:
				err = c.sendAgain()
			}
			if err != nil {
				c.say("error " + strings.ReplaceAll(err.Error(), "\n", "; "))
			}
		})
	}
	wg.Wait()
	t.Fatal("the child was not killed")
}

// say writes facts, each line in one call, so that none is torn.
func (c *child) say(lines ...string) {
	for _, line := range lines {
		if _, err := c.facts.WriteString(line + "\n"); err != nil {
			os.Exit(1) // the parent is gone
		}
	}
}

func (c *child) send(sender int, rng *rand.Rand) error {
	for n := 0; c.ctx.Err() == nil; {
		if c.open.Load() > killBacklog {
			if err := wait(c.ctx, time.Millisecond); err != nil {
				return nil
			}
			continue
		}
		var batch []forebay.Message
		for range 1 + rng.IntN(20) {
			// The number rises over all rounds, so that it tells the order of sending.
			m := c.message(fmt.Sprintf("%d.%d.%d", sender, rng.IntN(2*killGroups), c.round<<32+uint64(n)))
			n++
			batch = append(batch, m)
			c.say("send " + m.ID)
		}
		res, err := c.e.Send(c.ctx, batch)
		if err != nil {
			return err
		}
		for i, r := range res {
			if r.Err != nil || r.Duplicate {
				return fmt.Errorf("send of new %q gave %+v", batch[i].ID, r)
			}
			c.say("sent " + batch[i].ID)
		}
		c.open.Add(int64(len(batch)))
	}
	return nil
}

// message makes the message of an id: the same each time.
func (c *child) message(id string) forebay.Message {
	m := msg(id)
	m.Group = killGroup(id)
	if c.jobs && killJob(id) {
		m.Job = &forebay.JobOptions{Tenant: id[:1]}
	}
	return m
}

// killJob tells whether an id is that of a job: half are, where the engine keeps a
// ledger.
func killJob(id string) bool { return id[len(id)-1]%2 == 1 }

// killResult is the result of a job.
func killResult(id string) string { return `"` + id + `"` }

// killGroup tells the group of a message by its id: half have one.
func killGroup(id string) string {
	parts := strings.Split(id, ".")
	if len(parts) == 3 && parts[1] < fmt.Sprint(killGroups) {
		return parts[0] + "." + parts[1]
	}
	return ""
}

// sendAgain sends what earlier rounds had acknowledged: all are duplicates.
func (c *child) sendAgain() error {
	for _, id := range c.known {
		res, err := c.e.Send(c.ctx, []forebay.Message{c.message(id)})
		if err != nil {
			return err
		}
		if r := res[0]; r.Err != nil || !r.Duplicate || r.ID != id || r.Conflict {
			return fmt.Errorf("%q was acknowledged before and sent again: %+v", id, r)
		}
	}
	return nil
}

func (c *child) consume(consumer int, rng *rand.Rand) error {
	for n := 0; c.ctx.Err() == nil; n++ {
		r := engine.Receive{Queue: testQueue, Max: 1 + rng.IntN(50), Wait: time.Second, Lease: killLease}
		if c.all || c.keeps && rng.IntN(3) == 0 {
			r.Lease, r.Kept = killKept, true
		}
		ds, err := c.e.Receive(c.ctx, r)
		if err != nil {
			return err
		}
		batch := fmt.Sprintf("%d.%d.%d", c.round, consumer, n)
		for _, d := range ds {
			c.say(gotFact(d, batch))
			if r.Kept {
				c.say(keptFact(d))
			}
		}
		if r.Kept && rng.IntN(4) == 0 {
			if err := c.prolong(ds); err != nil {
				return err
			}
		}
		if err := c.tell(ds, rng); err != nil {
			return err
		}
		if err := c.settle(ds, rng); err != nil {
			return err
		}
	}
	return nil
}

// tell notes the progress of some jobs.
func (c *child) tell(ds []forebay.Delivery, rng *rand.Rand) error {
	var updates []forebay.ProgressUpdate
	for _, d := range ds {
		if d.Job != nil && rng.IntN(8) == 0 {
			updates = append(updates, saying(d, "stage", 50))
		}
	}
	jobs, ok := engine.As[engine.Jobs](c.e)
	if !ok || len(updates) == 0 {
		return nil
	}
	errs, err := jobs.Progress(c.ctx, updates)
	return errors.Join(append(errs, err)...)
}

func (c *child) settle(ds []forebay.Delivery, rng *rand.Rand) error {
	ss := acks(ds)
	for i, d := range ds {
		switch rng.IntN(12) {
		case 0:
			ss[i].Verdict, ss[i].Cause = forebay.Retry, cause("x")
		case 1:
			ss[i].Verdict = forebay.Release
		case 2:
			ss[i].Verdict, ss[i].Cause = forebay.Dead, cause("x")
		case 3:
			if d.Job != nil {
				ss[i].Verdict, ss[i].Cause = forebay.Cancelled, cause("x")
			}
		}
		if d.Job != nil && ss[i].Verdict == forebay.Ack {
			ss[i].Result = []byte(killResult(d.ID))
		}
		c.say(fmt.Sprintf("try %s %s", ss[i].Verdict, d.ID))
	}
	errs, err := c.e.Settle(c.ctx, ss)
	if err != nil {
		return err
	}
	for i, d := range ds {
		if forebay.CodeOf(errs[i]) == forebay.CodeLeaseLost && time.Now().After(d.LeaseUntil) { // the machine is slow
			c.say(fmt.Sprintf("lost %s %s", ss[i].Verdict, d.ID))
			continue
		}
		if errs[i] != nil {
			return errors.Join(fmt.Errorf("settle of %q", d.ID), errs[i])
		}
		c.say(fmt.Sprintf("did %s %s", ss[i].Verdict, d.ID))
		if v := ss[i].Verdict; v != forebay.Retry && v != forebay.Release {
			c.open.Add(-1)
		}
	}
	return nil
}
