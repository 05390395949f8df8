package redis

import (
	"context"
	"strings"
)

// Tidying: how much in one go, so that it never holds the server up.
const (
	tidyTurns  = 200 // sweeps of one after the other
	scanPage   = 1000
	wipedPurge = 2000 // purges of 500
)

// tidy sweeps queues, again while more is to be tidied, and wipes those that a Node
// client obliterated.
func (e *Engine) tidy(ctx context.Context, args []any) error {
	for range tidyTurns {
		v, err := e.run(ctx, "sweep", args...)
		if err != nil {
			return err
		}
		for _, queue := range v.out {
			if err := e.wipe(ctx, text(queue)); err != nil {
				return err
			}
		}
		if e.lastNumber(v) == 0 || len(args) == 2 {
			return nil
		}
	}
	return nil
}

// wipe drops all of ours that is left of an obliterated queue: jobs that BullMQ did not
// know of, keys of the queue, and the records of ids that guard nothing any more.
func (e *Engine) wipe(ctx context.Context, queue string) error {
	for _, script := range []string{"purge", "deadgone"} {
		for range wipedPurge {
			v, err := e.run(ctx, script, queue)
			if err != nil {
				return err
			}
			if number(v.out[0]) == 0 {
				break
			}
		}
	}
	prefix := e.key(queue, "fb:")
	err := e.eachKey(ctx, globbed(prefix)+"*", func(ctx context.Context, keys []string) error {
		return e.client.Unlink(ctx, keys...).Err()
	})
	if err != nil {
		return err
	}
	err = e.eachKey(ctx, globbed(e.global(""))+"[ikj]:*", func(ctx context.Context, keys []string) error {
		args := []any{queue, len(keys)}
		for _, k := range keys {
			args = append(args, k)
		}
		_, err := e.run(ctx, "wiped", args...)
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	pipe := e.client.Pipeline()
	pipe.SRem(ctx, e.global("q"), queue)
	pipe.ZRem(ctx, e.global("due"), queue)
	pipe.Del(ctx, e.key(queue, "stalled-check"), e.key(queue, "meta"), e.key(queue, "events"), e.key(queue, "id"))
	_, err = pipe.Exec(ctx)
	return e.fault(err)
}

// eachKey gives all keys of a pattern, page by page.
func (e *Engine) eachKey(ctx context.Context, pattern string, do func(ctx context.Context, keys []string) error) error {
	for cursor := uint64(0); ; {
		one, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
		keys, next, err := e.client.Scan(one, cursor, pattern, scanPage).Result()
		if err == nil && len(keys) > 0 {
			err = do(one, keys)
		}
		cancel()
		if err != nil {
			return e.fault(err)
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// globbed takes the meaning from what a pattern of keys would read as one.
func globbed(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
