package ingest_test

import (
	"fmt"
	"testing"
	"time"
)

func TestClocksAreCorrectedInStepsAndOnlyWhereTheyAreWrong(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		name, occurred, sent string // empty: not said
		want                 string
		corrected            bool
	}{
		{"right clock", `"2026-11-29T11:59:00Z"`, `"2026-11-29T12:00:00Z"`, "2026-11-29T11:59:00Z", false},
		{"on the way for two minutes", `"2026-11-29T11:57:00Z"`, `"2026-11-29T11:57:31Z"`, "2026-11-29T11:57:00Z", false},
		{"2.5 minutes slow", `"2026-11-29T11:57:00Z"`, `"2026-11-29T11:57:30Z"`, "2026-11-29T12:02:00Z", true},
		{"4 minutes slow counts as 5", `"2026-11-29T11:55:00Z"`, `"2026-11-29T11:56:00Z"`, "2026-11-29T12:00:00Z", true},
		{"an hour fast", `"2026-11-29T12:59:00Z"`, `"2026-11-29T13:00:00Z"`, "2026-11-29T11:59:00Z", true},
		{"ten years slow", `"2016-11-29T11:00:00Z"`, `"2016-11-29T12:00:00Z"`, "2026-11-29T11:00:00Z", true},
		{"ten years fast", `"2036-11-29T11:00:00Z"`, `"2036-11-29T12:00:00Z"`, "2026-11-29T11:00:00Z", true},
		{"at the epoch", `1000`, `61000`, "2026-11-29T12:00:01Z", true},
		{"no sending time, past", `"2019-01-01T00:00:00Z"`, "", "2019-01-01T00:00:00Z", false},
		{"no sending time, a day ahead", `"2026-11-30T12:00:00Z"`, "", "2026-11-30T12:00:00Z", false},
		{"no sending time, more than a day ahead", `"2026-11-30T12:00:01Z"`, "", "2026-11-29T12:00:00Z", true},
		{"said to be in the future of a right clock", `"2027-01-01T00:00:00Z"`, `"2026-11-29T12:00:00Z"`, "2026-11-29T12:00:00Z", true},
		{"nonsense from the year 9999", `"9999-12-31T23:59:59Z"`, `"9999-12-31T23:59:59Z"`, "2026-11-29T12:00:00Z", true},
		{"nonsense from the year 1", `"0001-01-01T00:00:01Z"`, `"2026-11-29T13:00:00Z"`, "2026-11-29T12:00:00Z", true},
		{"only a sending time", "", `"2026-11-29T12:00:00Z"`, "", false},
		{"another zone", `"2026-11-29T20:59:00.25+09:00"`, "", "2026-11-29T11:59:00.25Z", false},
	} {
		r := newRig(t, nil)
		body := `{"eventType":"a","payload":{}`
		if c.occurred != "" {
			body += `,"occurredAt":` + c.occurred
		}
		if c.sent != "" {
			body += `,"sentAt":` + c.sent
		}
		if status, answer := r.post("/ingest/event", body+"}"); status != 202 || len(r.queue.events) != 1 {
			t.Fatalf("%s: %d %s", c.name, status, answer)
		}
		e := r.queue.events[0]
		if c.want == "" {
			if !e.OccurredAt.IsZero() {
				t.Errorf("%s: occurred %s", c.name, e.OccurredAt)
			}
		} else if !e.OccurredAt.Equal(at(c.want)) || e.OriginalAt.IsZero() == c.corrected {
			t.Errorf("%s: occurred %s, originally %s; want %s", c.name, e.OccurredAt, e.OriginalAt, c.want)
		}
		if e.SentAt.IsZero() != (c.sent == "") || !e.ReceivedAt.Equal(noon) {
			t.Errorf("%s: sent %s, received %s", c.name, e.SentAt, e.ReceivedAt)
		}
	}
}

// Two requests of one phone take a different time on their way. That must not
// change the order of its events.
func TestTheTimeOnTheWayDoesNotReorderOnePhonesEvents(t *testing.T) {
	for _, skew := range []time.Duration{0, time.Minute, 20 * time.Minute, -3 * time.Hour} {
		r := newRig(t, nil)
		for i, way := range []time.Duration{32 * time.Second, 15 * time.Second, time.Second} {
			sent := noon.Add(time.Duration(i)*time.Second - skew)
			r.now.Store(int64(time.Duration(i)*time.Second + way))
			r.post("/ingest/event", fmt.Sprintf(`{"eventType":"a","payload":{},"occurredAt":%q,"sentAt":%q}`, sent.Format(time.RFC3339), sent.Format(time.RFC3339)))
		}
		for i := 1; i < 3; i++ {
			if d := r.queue.events[i].OccurredAt.Sub(r.queue.events[i-1].OccurredAt); d != time.Second {
				t.Errorf("skew %s: event %d is %s after the one before, want 1s", skew, i, d)
			}
		}
	}
}

func TestTimesThatAreNone(t *testing.T) {
	for _, v := range []string{`"2026-02-30T00:00:00Z"`, `"2026-11-29T12:00:00"`, `"2026-11-29"`, `"0000-01-01T00:00:00Z"`, `1.5`, `1e3`, `253402300800000`, `""`, `[]`, `"９"`} {
		r := newRig(t, nil)
		_, answer := r.post("/ingest/event", `{"eventType":"a","payload":{},"occurredAt":`+v+`}`)
		if len(r.queue.msgs) != 0 || len(r.badRows()) != 1 || r.badRows()[0].Code != "invalid_time" {
			t.Errorf("%s: %s", v, answer)
		}
	}
}
