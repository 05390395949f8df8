package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// The history is one stream. Its ids, ms-n, make the places: ms times 2^20, and n. An
// entry holds the events that a script made, so that they are one command; its id is
// the place of the first of them, and the others have the places after that. See
// lib/10_base.lua.

const (
	placeBits   = 20
	eventsAtOne = 100 // of one entry, at most
	scanAtOnce  = 1000
	scanMost    = 100_000 // events that one call looks through, where few match

	newsGap = 5 * time.Millisecond // from one wake-up to the next: under load a script is too little to wake for
)

func place(id string) int64 {
	ms, n, _ := strings.Cut(id, "-")
	return number(ms)<<placeBits | number(n)
}

func placeID(p int64) string { return fmt.Sprintf("%d-%d", p>>placeBits, p&(1<<placeBits-1)) }

// historyWaits lets calls wait for events with one connection for all: a reader that
// blocks on the stream while anybody waits.
type historyWaits struct {
	e *Engine

	mu      sync.Mutex // guards all below
	waiting int
	runs    bool
	changed chan struct{} // closed and replaced when events have come
}

// join begins a wait of somebody who has read up to a place.
func (h *historyWaits) join(after int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting++
	if !h.runs {
		h.runs = true
		h.e.running.Go(func() { h.read(placeID(after)) })
	}
}

func (h *historyWaits) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting--
}

func (h *historyWaits) news() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.changed
}

// read ends when nobody waits any more.
func (h *historyWaits) read(last string) {
	key := h.e.global("h")
	for pauseFor := time.Duration(0); ; {
		select {
		case <-h.e.closing:
			return
		case <-time.After(pauseFor):
		}
		h.mu.Lock()
		if h.waiting == 0 {
			h.runs = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		got, err := h.e.block.read(blockFor, key, last)
		pauseFor = 0
		if err != nil && !errors.Is(err, goredis.Nil) {
			pauseFor = 200 * time.Millisecond
		}
		if len(got) > 0 {
			pauseFor, last = newsGap, got[len(got)-1].ID
			h.mu.Lock()
			if h.changed != nil {
				close(h.changed)
				h.changed = nil
			}
			h.mu.Unlock()
		}
	}
}

func checkHistory(q *engine.HistoryQuery) error {
	if q.Limit < 0 || q.Limit > engine.MaxHistory {
		return fail(forebay.CodeInvalid, "a limit of %d; 1 to %d are allowed", q.Limit, engine.MaxHistory)
	}
	if q.Wait < 0 || q.Wait > engine.MaxWait {
		return fail(forebay.CodeInvalid, "a wait of %v; 0 to %v are allowed", q.Wait, engine.MaxWait)
	}
	q.Limit = cmp.Or(q.Limit, engine.MaxHistory)
	return nil
}

// History reads events; see engine.History.
func (e *Engine) History(ctx context.Context, q engine.HistoryQuery) (engine.HistoryPage, error) {
	if err := checkHistory(&q); err != nil {
		return engine.HistoryPage{}, err
	}
	if err := e.enter(); err != nil {
		return engine.HistoryPage{}, err
	}
	defer e.leave()
	page := engine.HistoryPage{Epoch: e.epoch, Next: q.After}
	if err := e.bounds(ctx, &q, &page); err != nil {
		return page, err
	}
	end := time.Now().Add(q.Wait)
	joined := false
	for {
		news := e.history.news() // before reading, so that nothing falls in between
		if err := e.scan(ctx, q, &page); err != nil {
			return page, err
		}
		left := time.Until(end)
		if len(page.Events) > 0 || page.More || left <= 0 {
			return page, nil
		}
		if !joined {
			joined = true
			e.history.join(page.Next)
			defer e.history.leave()
		}
		q.After = page.Next
		if err := e.restForNews(ctx, news, min(left, recheck)); err != nil {
			return page, err
		}
	}
}

func (e *Engine) restForNews(ctx context.Context, news <-chan struct{}, most time.Duration) error {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-news:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.closing:
		return fail(forebay.CodeClosed, "the engine was closed")
	}
	return nil
}

// bounds finds where the history begins, and for a query from now on where it ends.
func (e *Engine) bounds(ctx context.Context, q *engine.HistoryQuery, page *engine.HistoryPage) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	first, err := e.client.XRangeN(ctx, e.global("h"), "-", "+", 1).Result()
	if err != nil {
		return e.fault(err)
	}
	if len(first) > 0 {
		page.Oldest = place(first[0].ID)
	}
	if q.After >= 0 {
		return nil
	}
	q.After = 0
	last, err := e.client.XRevRangeN(ctx, e.global("h"), "+", "-", 1).Result()
	if err != nil {
		return e.fault(err)
	}
	if len(last) > 0 {
		q.After = place(last[0].ID) + int64(max(len(historyEvents(last[0])), 1)-1)
	}
	page.Next = q.After
	return nil
}

// scan adds to a page what lies after q.After and is asked for.
func (e *Engine) scan(ctx context.Context, q engine.HistoryQuery, page *engine.HistoryPage) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	page.Next, page.More = q.After, false
	// The entry that holds the next place may begin before it.
	from := placeID(q.After&^(1<<placeBits-1) + max(q.After&(1<<placeBits-1)-eventsAtOne, 0))
	for looked, entries := 0, min(max(q.Limit, 10), scanAtOnce/10); looked < scanMost; {
		got, err := e.client.XRangeN(ctx, e.global("h"), from, "+", int64(entries)).Result()
		if err != nil {
			return e.fault(err)
		}
		events := 0
		for _, m := range got {
			from = "(" + m.ID
			for _, ev := range historyEvents(m) {
				events++
				if ev.Seq <= page.Next {
					continue
				}
				if !q.Until.IsZero() && !ev.At.Before(q.Until) {
					return nil
				}
				if len(page.Events) == q.Limit {
					page.More = true
					return nil
				}
				page.Next = ev.Seq
				if wanted(&q, &ev) {
					page.Events = append(page.Events, ev)
				}
			}
		}
		if len(got) < entries {
			return nil
		}
		looked += events
		entries = min(max(scanAtOnce*len(got)/max(events, 1), 10), scanAtOnce) // as many events as one read should give
	}
	page.More = true
	return nil
}

func wanted(q *engine.HistoryQuery, ev *forebay.HistoryEvent) bool {
	return (q.Job == "" || q.Job == ev.Job) && (q.Queue == "" || q.Queue == ev.Queue) &&
		(len(q.Types) == 0 || slices.Contains(q.Types, ev.Type)) && (q.Since.IsZero() || !ev.At.Before(q.Since))
}
