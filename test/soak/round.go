//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// soak is one stand under load and chaos.
type soak struct {
	cfg    *config
	s      *stand
	b      *book
	show   *display
	number uint64 // of the stand, for its random numbers
	chaos  *chaos
	all    []fault
	watch  *watch
}

func (k *soak) random(round int, part string) *rand.Rand {
	seed := k.number<<32 | uint64(round)<<16
	for _, c := range []byte(part) {
		seed = seed*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(k.cfg.seed, seed))
}

// round loads the stand for a time, lets it come to rest and compares all that was acknowledged
// with what has become of it. hurt are the lanes of faults.
func (k *soak) round(ctx context.Context, n int, load time.Duration, hurt []lane) error {
	k.b.mu.Lock()
	k.b.reset()
	k.b.mu.Unlock()
	id := fmt.Sprintf("%s%d", k.s.engine[:2], n)
	loading, stop := context.WithTimeout(ctx, load)
	defer stop()
	patient, giveUp := context.WithTimeout(ctx, load+k.cfg.patience)
	defer giveUp()
	pulling, stopPulling := context.WithCancel(ctx)
	defer stopPulling()

	first := &producer{b: k.b, s: k.s, round: id, rng: k.random(n, "schedule"), name: "s"}
	schedule, end := first.schedule(patient)
	flows := &flowRuns{p: &producer{b: k.b, s: k.s, round: id, rng: k.random(n, "flows"), name: "f"}, want: map[string]string{}}
	var working, pullers sync.WaitGroup
	for i := range 2 {
		w := &puller{k.b, k.s, k.random(n, fmt.Sprint("pull", i))}
		pullers.Go(func() { w.run(pulling) })
	}
	for i := range k.cfg.producers {
		made := func(kind string) *producer {
			return &producer{b: k.b, s: k.s, round: id, rng: k.random(n, fmt.Sprint(kind, i)), name: fmt.Sprint("p", i), home: i}
		}
		events, jobs, groups := made("e"), made("j"), made("g")
		working.Go(func() { events.events(loading, patient, 8, 150*time.Millisecond) })
		working.Go(func() { jobs.jobs(loading, patient, 60*time.Millisecond) })
		working.Go(func() { groups.groups(loading, patient, 3, 120*time.Millisecond) })
	}
	working.Go(func() { flows.run(loading, patient, 700*time.Millisecond) })
	for _, l := range hurt {
		working.Go(func() { k.chaos.lane(loading, k.all, l, k.random(n, fmt.Sprint("lane", l))) })
	}
	working.Wait()
	if k.chaos.err != nil {
		return k.chaos.err
	}
	end(patient)
	k.show.state("coming to rest")
	err := k.settle(ctx, id, flows)
	stopPulling()
	pullers.Wait()
	if err != nil {
		return err
	}
	k.b.judgeSchedule(schedule, everyTick, time.Now())
	k.b.judgeLimits(time.Now())
	return k.watch.idle(ctx, k.b)
}

// settle waits until all has ended, or for as long as the patience lasts, and judges.
func (k *soak) settle(ctx context.Context, round string, flows *flowRuns) error {
	ctx, cancel := context.WithTimeout(ctx, 3*k.cfg.patience)
	defer cancel()
	for _, n := range k.s.all() {
		if err := n.await(ctx, "/readyz", k.cfg.patience); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(k.cfg.patience)
	// Flows first: their steps are jobs that nobody knows before they run.
	for {
		left, err := flows.ended(ctx, false)
		if err == nil && left == 0 {
			break
		}
		if late := time.Now().After(deadline); late || !rest(ctx, time.Second) {
			if _, err := flows.ended(ctx, true); err != nil {
				return err
			}
			break
		}
	}
	return errors.Join(k.jobsEnd(ctx, deadline), k.eventsEnd(ctx, round, deadline))
}

func (k *soak) jobsEnd(ctx context.Context, deadline time.Time) error {
	ids := k.b.acknowledged()
	final := map[string]*ended{}
	for {
		told, err := k.s.ends(ctx, ids)
		if err != nil && time.Now().After(deadline) {
			return err
		}
		var left []string
		for _, id := range ids {
			if e, known := told[id]; known && (e == nil || e.over()) {
				final[id] = e
			} else {
				left = append(left, id)
				final[id] = e
			}
		}
		if ids = left; len(ids) == 0 || time.Now().After(deadline) || !rest(ctx, time.Second) {
			break
		}
	}
	now := time.Now()
	for id, e := range final {
		k.b.judgeEnd(id, e, now)
	}
	return nil
}

func (k *soak) eventsEnd(ctx context.Context, round string, deadline time.Time) error {
	for {
		rows, err := k.s.rows(ctx, round)
		if err != nil {
			return err
		}
		dead, err := k.s.deadEvents(ctx, round)
		if err != nil {
			return err
		}
		missing := k.b.missing(rows) + k.b.undead(dead)
		if missing > 0 && time.Now().Before(deadline) && rest(ctx, time.Second) {
			continue
		}
		bad, err := k.s.badRows(ctx, round)
		if err != nil {
			return err
		}
		k.b.judgeEvents(rows, dead, bad, time.Now())
		return nil
	}
}
