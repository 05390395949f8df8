package redis_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// A dump of a server, a line for each key (a stream has one for each entry), so that what two
// servers hold can be compared. What is another each time (times, tokens) is written as a
// word, and keys and fields of ours are left out.

// ours are the keys that docs/redis.md says are ours.
func ours(t testing.TB) *regexp.Regexp {
	t.Helper()
	doc, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile("`(bull:[^` ]*:?fb:[^` ]*)`").FindAllStringSubmatch(string(doc), -1) {
		pattern := regexp.MustCompile(`[A-Z]+|\\\*`).ReplaceAllString(regexp.QuoteMeta(m[1]), `.+`)
		all = append(all, pattern)
	}
	if len(all) < 10 {
		t.Fatalf("docs/redis.md tells %d keys of ours: %v", len(all), all)
	}
	return regexp.MustCompile("^(" + strings.Join(all, "|") + ")$")
}

func dump(t testing.TB, c *goredis.Client, documented *regexp.Regexp) []string {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if key == "bull:q:pc" || key == "bull:q:marker" {
			continue // see dumpSorted and signals
		}
		if strings.Contains(key, ":fb:") {
			if !documented.MatchString(key) {
				t.Errorf("key %s is ours, and docs/redis.md does not tell of it", key)
			}
			continue
		}
		v, err := dumpKey(t, c, key)
		if err != nil {
			t.Fatal(key, err)
		}
		for i, line := range strings.Split(v, "\n") {
			out = append(out, fmt.Sprintf("%s %d %s", strings.TrimPrefix(key, "bull:q:"), i, line))
		}
	}
	return out
}

// signals are the markers that wake workers, the same on both servers or more: one that
// wakes nobody does no harm, one that is missing does.
func signals(t testing.TB, c *goredis.Client) []string {
	t.Helper()
	all, err := c.ZRange(t.Context(), "bull:q:marker", 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func dumpKey(t testing.TB, c *goredis.Client, key string) (string, error) {
	ctx := t.Context()
	kind, err := c.Type(ctx, key).Result()
	if err != nil {
		return "", err
	}
	switch kind {
	case "string":
		v, err := c.Get(ctx, key).Result()
		if strings.HasSuffix(key, ":lock") {
			ttl, ttlErr := c.PTTL(ctx, key).Result()
			return fmt.Sprint("held, ends by itself ", ttl > 0), ttlErr
		}
		return v, err
	case "list":
		v, err := c.LRange(ctx, key, 0, -1).Result()
		return fmt.Sprint(v), err
	case "set":
		v, err := c.SMembers(ctx, key).Result()
		slices.Sort(v)
		return fmt.Sprint(v), err
	case "zset":
		return dumpSorted(t, c, key)
	case "stream":
		return dumpEvents(t, c, key)
	case "hash":
		v, err := c.HGetAll(ctx, key).Result()
		if err != nil {
			return "", err
		}
		return dumpHash(v), nil
	}
	return kind, nil
}

// dumpSorted gives the order where it is by priority, for the others members only. A
// score has a counter in it (pc), which begins anew when somebody finds the set empty.
func dumpSorted(t testing.TB, c *goredis.Client, key string) (string, error) {
	all, err := c.ZRangeWithScores(t.Context(), key, 0, -1).Result()
	var out []string
	for _, z := range all {
		if strings.HasSuffix(key, ":prioritized") {
			out = append(out, fmt.Sprintf("%v of %d", z.Member, int64(z.Score)>>32))
		} else {
			out = append(out, fmt.Sprintf("%v %v", z.Member, z.Score > 0))
		}
	}
	if !strings.HasSuffix(key, ":prioritized") {
		slices.Sort(out) // two of one millisecond are by their ids
	}
	return fmt.Sprint(out), err
}

func dumpEvents(t testing.TB, c *goredis.Client, key string) (string, error) {
	all, err := c.XRange(t.Context(), key, "-", "+").Result()
	out := make([]string, len(all))
	for i, m := range all {
		if m.Values["event"] == "delayed" {
			m.Values["delay"] = "a time"
		}
		out[i] = fmt.Sprint(m.Values)
	}
	return strings.Join(out, "\n"), err
}

func dumpHash(v map[string]string) string {
	var out []string
	for _, f := range slices.Sorted(maps.Keys(v)) {
		s := v[f]
		switch {
		case strings.HasPrefix(f, "fb") || f == "pb" || f == "version":
			continue // ours, or whose it is
		case f == "timestamp" || f == "processedOn" || f == "finishedOn" || f == "delay" && s != "0" || f == "prevTS":
			s = "a time"
		case f == "opts":
			s = dumpOptions(s)
		}
		out = append(out, f+"="+s)
	}
	return strings.Join(out, " ")
}

// dumpOptions leaves out what only a producer reads, and what fields of their own say.
func dumpOptions(s string) string {
	var o map[string]any
	if json.Unmarshal([]byte(s), &o) != nil {
		return s
	}
	for _, name := range []string{"delay", "priority", "jobId"} {
		delete(o, name)
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
