package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func checkLimits(queue string, l engine.QueueLimits) error {
	if err := engine.CheckQueue(queue); err != nil {
		return err
	}
	if min(l.Active, l.KeyActive, l.Rate.Count, l.Rate.Burst, l.KeyRate.Count, l.KeyRate.Burst) < 0 || min(l.Rate.Per, l.KeyRate.Per) < 0 {
		return fail(forebay.CodeInvalid, "a limit of queue %q is below 0; 0 (none) or more is allowed", queue)
	}
	return nil
}

// rateArgs are count, ms and burst.
func rateArgs(r engine.Rate) []any {
	if r.Count == 0 {
		return []any{0, 0, 0}
	}
	per := float64(cmp.Or(r.Per, time.Second)) / float64(time.Millisecond)
	return []any{r.Count, strconv.FormatFloat(math.Max(per, 1e-3), 'f', -1, 64), cmp.Or(r.Burst, 1)}
}

// SetLimits sets the limits of a queue; see engine.Limiter.
func (e *Engine) SetLimits(ctx context.Context, queue string, l engine.QueueLimits) error {
	if err := checkLimits(queue, l); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	paused, says := 0, ""
	if l.Paused {
		paused = 1
	}
	if l != (engine.QueueLimits{}) {
		says = encode(l)
	}
	args := append([]any{queue, paused, l.Active}, rateArgs(l.Rate)...)
	args = append(append(append(args, l.KeyActive), rateArgs(l.KeyRate)...), says)
	for range 1000 { // lanes that were held up are let go a thousand at a time
		v, err := e.run(ctx, "limits", args...)
		if err != nil {
			return err
		}
		if number(v.out[0]) == 0 {
			break
		}
	}
	return nil
}

// QueueLimits tells the limits of a queue, also those that a Node client has set.
func (e *Engine) QueueLimits(ctx context.Context, queue string) (engine.QueueLimits, error) {
	var l engine.QueueLimits
	if err := e.enter(); err != nil {
		return l, err
	}
	defer e.leave()
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	says, err := e.client.HGet(ctx, e.key(queue, "fb:s"), "json").Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return l, e.fault(err)
	}
	if says != "" {
		if err := json.Unmarshal([]byte(says), &l); err != nil {
			return l, fail(forebay.CodeDamaged, "the limits of queue %q cannot be read: %v", queue, err)
		}
	}
	meta, err := e.client.HMGet(ctx, e.key(queue, "meta"), "paused", "concurrency", "max", "duration").Result()
	if err != nil {
		return l, e.fault(err)
	}
	l.Paused, l.Active = meta[0] != nil, int(number(meta[1]))
	if most := number(meta[2]); most > 0 && l.Rate.Count == 0 {
		l.Rate = engine.Rate{Count: int(most), Per: time.Duration(number(meta[3])) * time.Millisecond}
	}
	return l, nil
}

// Purge drops what is not active; see engine.Purger.
func (e *Engine) Purge(ctx context.Context, queue string) (dropped int64, err error) {
	if err := e.enter(); err != nil {
		return 0, err
	}
	defer e.leave()
	for {
		v, err := e.run(ctx, "purge", queue)
		if err != nil {
			return dropped, err
		}
		n := number(v.out[0])
		if dropped += n; n == 0 {
			return dropped, nil
		}
	}
}
