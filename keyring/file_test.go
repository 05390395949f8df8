package keyring

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/forebayhq/forebay"
)

const oneKey = `{"version":1,"keys":[{"id":"k1","name":"n","prefix":"fbk_ab","scopes":["ingest"],"dailyQuota":10,"createdAt":"2026-11-29T10:00:00Z","sha256":"`

// Whatever a file holds, it is refused with a code, or read and written alike.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"keys":[]}`))
	f.Add([]byte(oneKey + strings.Repeat("ab", 32) + `"}]}`))
	f.Add([]byte(`{"version":9}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := decode(b)
		if err != nil {
			if c := forebay.CodeOf(err); c != forebay.CodeDamaged && c != forebay.CodeTooNew {
				t.Fatalf("code %s: %v", c, err)
			}
			return
		}
		written, err := json.Marshal(encode(all))
		if err != nil {
			return // a time beyond the year 9999 is read and cannot be written
		}
		again, err := decode(written)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if twice, err := json.Marshal(encode(again)); err != nil || !reflect.DeepEqual(twice, written) {
			t.Fatalf("%v: first %s, then %s", err, written, twice)
		}
	})
}

// Counters are read or begin at 0; they are never negative and never cost a key.
func FuzzUsage(f *testing.F) {
	f.Add([]byte(`{"version":1,"day":"2026-11-29","events":{"k1":5}}`))
	f.Add([]byte(`{"version":1,"day":"2026-11-29","events":{"k1":-9223372036854775808}}`))
	f.Add([]byte(`{"version":1,"day":"2026-11-29","events":{"k1":9223372036854775807}}`))
	f.Add([]byte(`{"version":2}`))
	now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := decode([]byte(oneKey + strings.Repeat("ab", 32) + `"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		e := all[0]
		if err := decodeUsage(b, all); err != nil && (e.meter.day != 0 || e.meter.today != 0) {
			t.Fatalf("%v, and %d counted", err, e.meter.today)
		}
		e.meter.turn(now)
		used := e.meter.today
		if _, err := e.meter.spend(&e.Key, 1, now); used < 0 || (err == nil) != (used < 10) {
			t.Fatalf("%d used, then %v", used, err)
		}
	})
}
