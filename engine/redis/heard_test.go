package redis_test

import (
	"testing"
	"time"

	"github.com/forebayhq/forebay/engine/redis"
)

// What is asked for by the clock of this machine is due by that of Redis, whichever is ahead.
func TestClocksThatDiffer(t *testing.T) {
	heard := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := heard.Add(time.Minute)
	for ahead, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, -time.Hour: -time.Hour, 99 * time.Millisecond: 0, 0: 0} {
		if got := redis.ByServer(heard.Add(ahead), heard, now, now.Add(10*time.Second)); got.Sub(now) != want+10*time.Second {
			t.Errorf("Redis is ahead by %s: in 10 s is by its clock in %s, want %s more", ahead, got.Sub(now), want)
		}
	}
	if got := redis.ByServer(heard.Add(time.Hour), heard, now, time.UnixMilli(0)); !got.IsZero() {
		t.Errorf("no time became %s", got)
	}
}
