package sqs_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqs"
)

var tamperSeed = flag.Uint64("tamper.seed", 0, "the seed of TestTampering; 0: a new one")

// Producers and consumers on a network that does all that networks and SQS do to them:
// nothing is lost, polling never stops, and groups of a FIFO queue keep their order.
func TestTampering(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprintf("fifo=%v", fifo), func(t *testing.T) {
			t.Parallel()
			seed := *tamperSeed
			if seed == 0 {
				seed = rand.Uint64()
			}
			t.Logf("again: go test ./engine/sqs -run TestTampering -tamper.seed=%d", seed)
			synctest.Test(t, func(t *testing.T) { tampering(t, seed, fifo) })
		})
	}
}

const (
	tamperGroups = 6
	tamperEach   = 40
)

// crowd is what the producers and consumers of a tampering share.
type crowd struct {
	*testing.T
	e     *sqs.Engine
	fifo  bool
	mu    sync.Mutex
	begin time.Time
	last  map[string]int  // worked, by group: the highest number
	done  map[string]bool // worked, by id
	work  int
	until map[string]time.Time // worked, by id: when its lease ends; nil: no lease ends before its settlement
}

func tampering(t *testing.T, seed uint64, fifo bool) {
	rng := rand.New(rand.NewPCG(seed, 1))
	faults := []fault{resets, loses, hangs, stalls, throttle, over, denied, breaks, partial, slow, cut}
	ep := newEndpoint(t)
	spoiler := ep.tampered(seed, func(action string) fault {
		if action == "CreateQueue" || rng.IntN(4) != 0 {
			return none
		}
		return faults[rng.IntN(len(faults))]
	})
	e := ep.open(t, func(c *sqs.Config) { c.HTTP, c.CreateFIFO = spoiler, fifo })
	c := &crowd{T: t, e: e, fifo: fifo, begin: time.Now(), last: make(map[string]int), done: make(map[string]bool)}
	var all sync.WaitGroup
	for g := range tamperGroups {
		all.Go(func() { c.produce(fmt.Sprint("g", g)) })
		all.Go(func() { c.consume(rand.New(rand.NewPCG(seed, uint64(g)))) })
	}
	all.Wait()
	t.Logf("%d messages in %v, worked %d times; %+v", len(c.done), time.Since(c.begin).Round(time.Second), c.work, e.Counters())
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	c.e = ep.open(t, func(c *sqs.Config) { c.CreateFIFO = fifo })
	<-time.After(time.Hour) // whatever was leased is free
	c.consume(rand.New(rand.NewPCG(seed, 2)))
	if err := c.e.Close(); err != nil {
		t.Error(err)
	}
	ep.stop()
	for _, f := range faults {
		if spoiler.did[f] == 0 {
			t.Errorf("nothing was spoiled by %q", f)
		}
	}
}

// produce sends numbered messages one after the other, each until it was taken.
func (c *crowd) produce(group string) {
	for i := 1; i <= tamperEach; i++ {
		m := forebay.Message{ID: fmt.Sprintf("%s-%d", group, i), Queue: "q", Group: group, Payload: []byte("x")}
		for {
			res, err := c.e.Send(c.Context(), []forebay.Message{m})
			if err == nil && res[0].Err == nil {
				break
			}
			<-time.After(time.Second)
		}
	}
}

// consume works until all was worked once and the queue looks empty: an ack may be done
// and never told.
func (c *crowd) consume(rng *rand.Rand) {
	for empty := 0; ; {
		c.mu.Lock()
		all := len(c.done) == tamperGroups*tamperEach
		c.mu.Unlock()
		if time.Since(c.begin) > 6*time.Hour {
			c.Errorf("%d messages were worked in six hours", len(c.done))
		}
		if all && empty > 2 || c.Failed() {
			return
		}
		ds, err := c.e.Receive(c.Context(), engine.Receive{Queue: "q", Max: 1 + rng.IntN(25), Wait: 10 * time.Second, Lease: 40 * time.Second})
		if err != nil {
			<-time.After(time.Second) // as the worker does
			continue
		}
		if empty++; len(ds) > 0 {
			empty = 0
		}
		ss := c.handle(rng, ds)
		for len(ss) > 0 { // as the worker does: again, until the lease has ended
			errs, err := c.e.Settle(c.Context(), ss)
			if err != nil {
				c.Errorf("settle: %v", err)
				return
			}
			ss = c.again(ss, errs)
			if len(ss) > 0 {
				<-time.After(time.Second)
			}
		}
	}
}

func (c *crowd) again(ss []forebay.Settlement, errs []error) (left []forebay.Settlement) {
	for i, s := range ss {
		if code := forebay.CodeOf(errs[i]); errs[i] != nil && code != forebay.CodeLeaseLost {
			left = append(left, s)
		}
	}
	return left
}

// handle works a batch off, and stops a group at its first failure.
func (c *crowd) handle(rng *rand.Rand, ds []forebay.Delivery) []forebay.Settlement {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ss []forebay.Settlement
	var stopped []string
	for _, d := range ds {
		s := forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack}
		var n int
		if _, err := fmt.Sscanf(d.ID, d.Group+"-%d", &n); err != nil {
			c.Errorf("%q came", d.ID)
		}
		switch {
		case slices.Contains(stopped, d.Group):
			s.Verdict = forebay.Release
		case c.until != nil && !time.Now().Before(d.LeaseUntil): // this goroutine had to wait; somebody else may have it
			s.Verdict = forebay.Release
			stopped = append(stopped, d.Group)
		case rng.IntN(10) == 0:
			s.Verdict, s.After = forebay.Retry, time.Duration(rng.IntN(5))*time.Second
			stopped = append(stopped, d.Group)
		default:
			c.work++
			if c.fifo && !c.inOrder(&d, n) {
				c.Errorf("%q came after number %d of its group", d.ID, c.last[d.Group])
			}
			c.last[d.Group] = max(n, c.last[d.Group])
			c.done[d.ID] = true
			if c.until != nil {
				c.until[d.ID] = d.LeaseUntil
			}
		}
		if !c.fifo {
			stopped = nil
		}
		ss = append(ss, s)
	}
	return ss
}

// inOrder tells whether message n of a group may be worked now. One that was worked may
// come again, and those after it too, once its lease has ended without its ack.
func (c *crowd) inOrder(d *forebay.Delivery, n int) bool {
	last := c.last[d.Group]
	until, worked := c.until[d.ID]
	return n == last || n == last+1 || n < last && worked && !time.Now().Before(until)
}
