package monitor

import (
	"testing"
	"time"
)

// Durations are counted by minute and size; an hour later a minute is another one.
func TestDurationsByMinute(t *testing.T) {
	t.Parallel()
	var m minutes
	at := time.Date(2026, 11, 30, 12, 0, 30, 0, time.UTC)
	m.add(at, 500*time.Microsecond)
	m.add(at, time.Millisecond)           // its bound is in
	m.add(at.Add(time.Minute), time.Hour) // longer than all
	v := m.durations(at.Add(time.Minute))
	if !v.From.Equal(at.Add(-58*time.Minute-30*time.Second)) || len(v.Counts) != 60 || len(v.Counts[0]) != len(v.Bounds)+1 {
		t.Errorf("it begins at %s, with %d minutes of %d rows", v.From, len(v.Counts), len(v.Counts[0]))
	}
	if v.Counts[58][0] != 2 || v.Counts[59][12] != 1 {
		t.Errorf("the last two minutes are %v", v.Counts[58:])
	}
	m.add(at.Add(time.Hour), time.Second)
	v = m.durations(at.Add(time.Hour))
	if v.Counts[59][0] != 0 || v.Counts[59][6] != 1 || v.Counts[0][12] != 1 {
		t.Errorf("an hour later the first minute is %v, the last %v", v.Counts[0], v.Counts[59])
	}
	for i, rows := range m.durations(at.Add(3 * time.Hour)).Counts {
		for _, n := range rows {
			if n != 0 {
				t.Fatalf("after hours without anything minute %d is %v", i, rows)
			}
		}
	}
}
