package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
)

// TestTicksWhereClocksChange has each of the ways in which local time is not even.
func TestTicksWhereClocksChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cron, zone, after string
		ticks             string // as UTC
	}{
		"forward, the time is left out": {"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
			"2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30"},
		"forward, several are left out": {"0,15,30 2 * * *", "America/New_York", "2026-03-08T00:00:00Z",
			"2026-03-08T07:00 2026-03-09T06:00 2026-03-09T06:15"},
		"forward, one is left out and one is where it ends": {"0 2,3 * * *", "America/New_York", "2026-03-08T00:00:00Z",
			"2026-03-08T07:00 2026-03-09T06:00 2026-03-09T07:00"},
		"forward, nothing is left out": {"30 4 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T02:30 2026-03-30T02:30"},
		"forward at midnight":          {"0 0 * * *", "America/Asuncion", "2023-09-30T12:00:00Z", "2023-10-01T04:00 2023-10-02T03:00"},
		"forward, each hour":           {"30 * * * *", "Europe/Berlin", "2026-03-28T23:45:00Z", "2026-03-29T00:30 2026-03-29T01:30 2026-03-29T02:30"},
		"back, the time is twice": {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			"2026-10-25T00:30 2026-10-26T01:30"},
		"back, asked between the two": {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-26T01:30"},
		"back, asked at the change":   {"30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", "2026-10-26T01:30"},
		"back, several are twice": {"0,20,40 1 * * *", "America/New_York", "2026-11-01T00:00:00Z",
			"2026-11-01T05:00 2026-11-01T05:20 2026-11-01T05:40 2026-11-02T06:00"},
		"back, where the hour ends": {"59 1 * * *", "America/New_York", "2026-11-01T05:30:00Z", "2026-11-01T05:59 2026-11-02T06:59"},
		"back, each hour": {"30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z",
			"2026-10-25T00:30 2026-10-25T01:30 2026-10-25T02:30"},
		"back by half an hour": {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
			"2026-04-04T14:45 2026-04-05T15:15"},
		"forward by half an hour":     {"10 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30 2026-10-04T15:10"},
		"a day that was left out":     {"0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-29T22:00 2011-12-30T10:00 2011-12-30T22:00"},
		"a zone without changes":      {"0 9 * * 1", "Asia/Kolkata", "2026-11-29T00:00:00Z", "2026-11-30T03:30 2026-12-07T03:30"},
		"seconds":                     {"*/20 59 23 31 12 *", "UTC", "2026-11-29T00:00:00Z", "2026-12-31T23:59:00 2026-12-31T23:59:20 2026-12-31T23:59:40 2027-12-31T23:59:00"},
		"a name":                      {"@weekly", "UTC", "2026-11-29T00:00:00Z", "2026-12-06T00:00 2026-12-13T00:00"},
		"29 February":                 {"0 0 29 2 *", "Europe/Berlin", "2026-01-01T00:00:00Z", "2028-02-28T23:00 2032-02-28T23:00"},
		"a day that does not come":    {"0 0 31 2 *", "Europe/Berlin", "2026-01-01T00:00:00Z", ""},
		"half past an instant before": {"30 2 * * *", "Europe/Berlin", "2026-03-29T00:59:59.999999999Z", "2026-03-29T01:00 2026-03-30T00:30"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planOf(t, Definition{Cron: c.cron, Timezone: c.zone})
			var got []string
			n := len(strings.Fields(c.ticks))
			for _, tick := range p.preview(at(t, c.after), max(n, 1)) {
				got = append(got, strings.TrimSuffix(tick.UTC().Format("2006-01-02T15:04:05"), map[bool]string{true: ":00"}[len(strings.Fields(c.cron)) < 6]))
			}
			if s := strings.Join(got, " "); s != c.ticks {
				t.Errorf("ticks are\n%s, not\n%s", s, c.ticks)
			}
		})
	}
}

// TestTicksAgainstEachMinute holds the search to its definition: a look at every
// minute of some years.
func TestTicksAgainstEachMinute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, zone string }{
		{"15 0,1,2,3 * * *", "America/New_York"}, {"0,30 2 * * 0", "Europe/London"}, {"45 1,2 * * *", "Australia/Lord_Howe"},
		{"0 0-6/2 * * *", "America/Santiago"}, {"10 * * * *", "Africa/Casablanca"}, {"20 2-4 1-7 * *", "Asia/Gaza"},
	} {
		p := planOf(t, Definition{Cron: c.cron, Timezone: c.zone})
		begin, end := at(t, "2025-12-01T00:00:00Z"), at(t, "2027-01-01T00:00:00Z")
		want := byMinutes(p, begin, end)
		var got []time.Time
		for tick := p.next(begin); tick.Before(end); tick = p.next(tick) {
			got = append(got, tick)
		}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || !got[i].Equal(want[i]) {
				t.Errorf("%s in %s: tick %d of %d is %v; by minutes %d, %v", c.cron, c.zone, i, len(got), got[min(i, len(got)-1)].UTC(), len(want), want[min(i, len(want)-1)].UTC())
				break
			}
		}
		for i := 0; i < len(got); i += 7 { // also from between two ticks
			if i > 0 && !p.next(got[i-1].Add(time.Second)).Equal(got[i]) || !p.next(got[i].Add(-1)).Equal(got[i]) {
				t.Errorf("%s in %s: asked just beside it, the next tick is not %v", c.cron, c.zone, got[i])
			}
		}
	}
}

// byMinutes is the oracle: it goes along the clock on the wall.
func byMinutes(p *plan, begin, end time.Time) (ticks []time.Time) {
	const day = 24 * time.Hour
	last := begin.Add(-day) // up to here, what local times have been
	latest := local(last, p.ticks.zone)
	for u := last.Add(time.Minute); u.Before(end); u = u.Add(time.Minute) {
		now := local(u, p.ticks.zone)
		match := matches(p, now)
		switch {
		case p.ticks.evenly:
		case !now.After(latest): // it was shown before
			match = false
		default:
			for m := latest.Add(time.Minute); m.Before(now); m = m.Add(time.Minute) {
				match = match || matches(p, m) // it was left out
			}
			latest = now
		}
		if match && u.After(begin) {
			ticks = append(ticks, u)
		}
	}
	return ticks
}

func local(u time.Time, zone *time.Location) time.Time { return u.UTC().Add(offset(u, zone)) }

func matches(p *plan, local time.Time) bool {
	c := p.ticks.cron
	has := func(bits uint64, n int) bool { return bits&(1<<n) != 0 }
	const star = 1 << 63
	dom, dow := has(c.Dom, local.Day()), has(c.Dow, int(local.Weekday()))
	day := dom && dow
	if c.Dom&star == 0 && c.Dow&star == 0 {
		day = dom || dow
	}
	return day && has(c.Minute, local.Minute()) && has(c.Hour, local.Hour()) && has(c.Month, int(local.Month()))
}

func TestEvery(t *testing.T) {
	t.Parallel()
	since := at(t, "2026-03-29T00:10:00.5Z")
	start := at(t, "2026-03-29T00:00:05Z")
	for name, c := range map[string]struct {
		d     Definition
		after string
		want  string
	}{
		"from when it was made": {Definition{Every: 90 * time.Second}, "2026-03-29T00:10:00Z", "00:11:30 00:13:00"},
		"at a tick":             {Definition{Every: 90 * time.Second}, "2026-03-29T00:11:30Z", "00:13:00 00:14:30"},
		"from its start":        {Definition{Every: time.Minute, Start: start}, "2026-03-28T00:00:00Z", "00:00:05 00:01:05"},
		"later":                 {Definition{Every: time.Minute, Start: start}, "2026-03-29T05:00:04Z", "05:00:05 05:01:05"},
		"to its end":            {Definition{Every: time.Minute, Start: start, End: at(t, "2026-03-29T00:02:05Z")}, "2026-03-29T00:01:00Z", "00:01:05 00:02:05"},
		"over a change":         {Definition{Every: time.Hour, Start: start}, "2026-03-29T00:30:00Z", "01:00:05 02:00:05 03:00:05"},
	} {
		p := planSince(t, c.d, since)
		var got []string
		for _, tick := range p.preview(at(t, c.after), len(strings.Fields(c.want))+len(c.d.End.Format(""))) {
			got = append(got, tick.UTC().Format("15:04:05"))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, not %s", name, s, c.want)
		}
	}
	p := planSince(t, Definition{Every: time.Minute, Start: start, End: start.Add(time.Minute)}, since)
	if next := p.next(start.Add(time.Minute)); !next.IsZero() {
		t.Errorf("after its end there is a tick at %s", next)
	}
}

func TestCronTextsThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"61 * * * *":                            `the minute "61" at position 1 is not allowed; 0 to 59,`,
		"0  24 * * *":                           `the hour "24" at position 4 is not allowed; 0 to 23,`,
		"0 1,2,x * * *":                         `the hour "x" at position 7`,
		"0 0 0 1 13 *":                          `the month "13" at position 9 is not allowed; 1 to 12 or jan to dec`,
		"99 0 0 1 1 *":                          `the second "99" at position 1`,
		"* * 5-2 * *":                           `the day of the month "5-2" at position 5`,
		"* * * * 7":                             `the day of the week "7" at position 9 is not allowed; 0 to 6 or sun to sat, 0 is Sunday`,
		"*/0 * * * *":                           `the minute "*/0" at position 1`,
		"0 1,, * * *":                           `the hour "" at position 5`,
		"0 8 * *":                               "ends after 4 fields, at position 7; allowed are five fields",
		"0 8 * * * * 2026":                      `a field too many, "2026" at position 13`,
		"":                                      "is empty",
		"@often":                                `"@often" at position 1 is not known`,
		"@every 5m":                             "the field every says how often",
		"TZ=Asia/Tokyo 0 8 * *":                 "names a zone at position 1; the field timezone does",
		"TZ=":                                   "names a zone",
		"0 8 * * é":                             "a character at position 9 that is not allowed",
		strings.Repeat("1,", 128) + "1 * * * *": "at most 256 are allowed",
	} {
		_, err := parseCron(text)
		if err == nil || !strings.Contains(err.Error(), want) || forebay.CodeOf(err) != forebay.CodeInvalid || !strings.HasSuffix(err.Error(), "(cron)") {
			t.Errorf("%q: %v, not … %s", text, err, want)
		}
	}
}

func TestDueIsBounded(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-11-29T12:00:00Z")
	for _, c := range []struct {
		d      Definition
		ago    time.Duration
		count  int64
		more   bool
		newest int
	}{
		{Definition{Cron: "*/5 * * * *"}, time.Hour, 12, false, 12},
		{Definition{Cron: "* * * * *"}, 24 * time.Hour, 1440, false, keptTicks},
		{Definition{Cron: "* * * * * *"}, 3 * 365 * 24 * time.Hour, maxCounted, true, keptTicks},
		{Definition{Every: time.Second}, 30 * 365 * 24 * time.Hour, maxCounted, true, keptTicks},
		{Definition{Cron: "* * 1 1 *"}, 9 * 365 * 24 * time.Hour, maxCounted, true, keptTicks},
		{Definition{Every: time.Second, End: now.Add(-20 * 365 * 24 * time.Hour)}, 30 * 365 * 24 * time.Hour, maxCounted, true, keptTicks},
	} {
		since := now.Add(-c.ago)
		p := planSince(t, c.d, since)
		d := p.due(since, now)
		if d.count != c.count || d.more != c.more || len(d.newest) != c.newest {
			t.Errorf("%+v: count %d more %v newest %d", c, d.count, d.more, len(d.newest))
		}
		last := d.newest[len(d.newest)-1]
		if next := p.next(last); !next.IsZero() && !next.After(now) {
			t.Errorf("%+v: %s is not the newest, %s is due too", c, last, next)
		}
		for i := 1; i < len(d.newest); i++ {
			if !p.next(d.newest[i-1]).Equal(d.newest[i]) {
				t.Errorf("%+v: between %s and %s one is left out", c, d.newest[i-1], d.newest[i])
			}
		}
	}
}

func planOf(t *testing.T, d Definition) *plan {
	t.Helper()
	return planSince(t, d, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
}

func planSince(t *testing.T, d Definition, since time.Time) *plan {
	t.Helper()
	p, err := new(zones).plan(d, since)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
