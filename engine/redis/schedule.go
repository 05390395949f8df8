package redis

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/forebayhq/forebay"
)

// Runs of a BullMQ job scheduler: whoever picks one up makes the next, before it works
// (lua/schedule.lua). A worker that did not would end the schedule.

// goOn makes the next run of a scheduler.
func (e *Engine) goOn(queue, scheduler, run string) error {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Timeout)
	defer cancel()
	f, err := e.client.HMGet(ctx, e.key(queue, "repeat:"+scheduler), "pattern", "tz", "startDate").Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return e.fault(err)
	}
	next := int64(0)
	if pattern := text(f[0]); pattern != "" {
		at, err := nextByPattern(pattern, text(f[1]), latest(e.now(), atMillis(number(f[2])), runTime(run)))
		if err != nil {
			return err
		}
		next = at.UnixMilli()
	}
	_, err = e.run(ctx, "schedule", queue, scheduler, run, next)
	return err
}

// runTime is when a run was due: repeat:<scheduler>:<ms>.
func runTime(run string) time.Time { return atMillis(number(run[strings.LastIndexByte(run, ':')+1:])) }

func latest(times ...time.Time) (t time.Time) {
	for _, o := range times {
		if o.After(t) {
			t = o
		}
	}
	return t
}

// nextByPattern is the next time of a cron pattern of five fields, or six with seconds.
func nextByPattern(pattern, zone string, after time.Time) (time.Time, error) {
	loc, err := time.LoadLocation(cmp.Or(zone, "Local"))
	if err != nil {
		return time.Time{}, fail(forebay.CodeInvalid, "the time zone %q of a job scheduler is not known", zone)
	}
	s, err := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(pattern)
	if err != nil {
		return time.Time{}, fail(forebay.CodeInvalid, "the pattern %q of a job scheduler cannot be read: %v", pattern, err)
	}
	next := s.Next(after.In(loc))
	if next.IsZero() {
		return time.Time{}, fail(forebay.CodeInvalid, "the pattern %q of a job scheduler has no next time", pattern)
	}
	return next, nil
}
