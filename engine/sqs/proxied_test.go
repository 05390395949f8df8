package sqs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqs"
)

const (
	wireGroups = 5
	wireEach   = 16 // of each group
	wireSend   = 8  // of them in one call
	wireLease  = 2 * time.Second
	wireMost   = 2 * time.Minute // a machine that has other work to do
)

// The same as TestTampering on real sockets: a proxy resets, holds and cuts connections
// between an engine and our endpoint. Each message is worked, groups of a FIFO queue keep
// their order, and in the end nothing is left in the queue.
func TestTamperingOnTheWire(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprintf("fifo=%v", fifo), func(t *testing.T) {
			t.Parallel()
			seed := *tamperSeed
			if seed == 0 {
				seed = rand.Uint64()
			}
			t.Logf("again, as far as goroutines allow: -run TestTamperingOnTheWire -tamper.seed=%d", seed)
			tamperingOnTheWire(t, seed, fifo)
		})
	}
}

func tamperingOnTheWire(t *testing.T, seed uint64, fifo bool) {
	ep := newEndpoint(t)
	server := httptest.NewServer(ep.front)
	defer server.Close()
	p := newProxy(t, server.Listener.Addr().String(), seed)
	e, err := sqs.Open(t.Context(), sqs.Config{
		Endpoint: "http://" + p.listener.Addr().String(), Create: true, CreateFIFO: fifo,
		Timeout: 300 * time.Millisecond, Watchdog: 300 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), wireMost)
	defer cancel()
	c := &wireCrowd{crowd: crowd{T: t, e: e, fifo: fifo, begin: time.Now(), last: make(map[string]int), done: make(map[string]bool), until: make(map[string]time.Time)}, ctx: ctx, ep: ep}
	finished := make(chan struct{}, 2*wireGroups)
	for g := range wireGroups {
		go func() { c.produce(fmt.Sprint("g", g)); finished <- struct{}{} }()
		go func() { c.consume(rand.New(rand.NewPCG(seed, uint64(g)))); finished <- struct{}{} }()
	}
	for range cap(finished) {
		<-finished
	}
	if len(c.done) != wireGroups*wireEach {
		t.Errorf("%d of %d messages were worked", len(c.done), wireGroups*wireEach)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	ep.front.Close()
	p.close() // nothing counts any more
	t.Logf("%d messages, worked %d times in %v; %+v; %v", len(c.done), c.work, time.Since(c.begin).Round(time.Millisecond), e.Counters(), p.lies.did)
	for _, f := range wireFaults() {
		if p.lies.did[f] == 0 {
			t.Errorf("nothing was spoiled by %q", f)
		}
	}
}

// wireCrowd is a crowd on a clock that is real.
type wireCrowd struct {
	crowd
	ctx context.Context
	ep  *endpoint
}

// produce sends some at a time; of what failed, none may have been overtaken.
func (c *wireCrowd) produce(group string) {
	for i := 1; i <= wireEach; i += wireSend {
		var left []forebay.Message
		for n := i; n < i+wireSend; n++ {
			left = append(left, forebay.Message{ID: fmt.Sprintf("%s-%d", group, n), Queue: "q", Group: group, Payload: []byte("x")})
		}
		for len(left) > 0 {
			if c.ctx.Err() != nil {
				c.Errorf("%d messages of %s are not sent", len(left), group)
				return
			}
			res, err := c.e.Send(c.ctx, left)
			if err != nil {
				continue
			}
			var again []forebay.Message
			for n, r := range res {
				if r.Err != nil {
					again = append(again, left[n])
				}
			}
			left = again
		}
	}
}

// consume works until all was worked, and nothing is left at the endpoint.
func (c *wireCrowd) consume(rng *rand.Rand) {
	for !c.over() {
		if c.ctx.Err() != nil {
			c.Errorf("after %v, %d messages were worked", time.Since(c.begin), len(c.done))
			return
		}
		ds, err := c.e.Receive(c.ctx, engine.Receive{Queue: "q", Max: 1 + rng.IntN(15), Wait: time.Second, Lease: wireLease})
		if err != nil {
			continue // it has waited as long as it was allowed to
		}
		for ss := c.handle(rng, ds); len(ss) > 0; {
			errs, err := c.e.Settle(c.ctx, ss)
			if err != nil {
				c.Errorf("settle: %v", err)
				return
			}
			ss = c.again(ss, errs)
		}
	}
}

func (c *wireCrowd) over() bool {
	c.mu.Lock()
	all := len(c.done) == wireGroups*wireEach
	c.mu.Unlock()
	if !all {
		return false
	}
	stats, err := c.ep.store.Stats(c.ctx)
	if err != nil {
		c.Errorf("stats: %v", err)
		return true
	}
	left := int64(0)
	for _, s := range stats {
		left += s.Waiting + s.Active + s.Delayed
	}
	return left == 0
}
