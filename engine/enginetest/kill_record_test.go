package enginetest

import (
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
)

// Ids are sender.group.number; groups 0 to 3 are groups, higher ones are none.
func TestKillRecord(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts string // ; between facts, | where the child is killed
		stats forebay.QueueStats
		dead  map[string]bool
		want  string // empty: fair
	}{
		{name: "nothing", facts: "ready"},
		{name: "acked", facts: "send 0.9.1;sent 0.9.1;got 0.9.1 1 1 b;try ack 0.9.1;did ack 0.9.1|"},
		{name: "an unanswered send is lost", facts: "send 0.9.1|"},
		{name: "an answered send is lost", facts: "send 0.9.1;sent 0.9.1|", want: "want 1"},
		{name: "an answered send is there", facts: "send 0.9.1;sent 0.9.1|", stats: forebay.QueueStats{Waiting: 1}, want: "is lost"},
		{name: "an unanswered ack was done", facts: "send 0.9.1;sent 0.9.1;got 0.9.1 1 1 b;try ack 0.9.1|"},
		{name: "an unanswered ack was not done", facts: "send 0.9.1;sent 0.9.1;got 0.9.1 1 1 b;try ack 0.9.1|got 0.9.1 2 1 c;did ack 0.9.1"},
		{name: "an answered ack comes back", facts: "send 0.9.1;sent 0.9.1;got 0.9.1 1 1 b;did ack 0.9.1|got 0.9.1 2 1 c", want: "after its ack"},
		{name: "deliveries fall", facts: "send 0.9.1;sent 0.9.1;got 0.9.1 2 1 b|got 0.9.1 1 1 c", want: "time 1 after time 2"},
		{name: "a release gives back", facts: "send 0.9.1;got 0.9.1 2 1 b;try release 0.9.1;did release 0.9.1|got 0.9.1 2 1 c;did ack 0.9.1"},
		{name: "an unanswered release may give back", facts: "send 0.9.1;got 0.9.1 2 1 b;try release 0.9.1|got 0.9.1 2 1 c;did ack 0.9.1"},
		{name: "a release gives back too much", facts: "send 0.9.1;got 0.9.1 2 1 b;try release 0.9.1;did release 0.9.1|got 0.9.1 1 1 c", want: "time 1 after time 2"},
		{name: "a failure is forgotten", facts: "send 0.9.1;got 0.9.1 1 1 b;did retry 0.9.1|got 0.9.1 2 1 c", want: "attempt 1 after 1"},
		{name: "an unanswered retry", facts: "send 0.9.1;got 0.9.1 1 1 b;try retry 0.9.1|got 0.9.1 2 2 c;did ack 0.9.1"},
		{name: "an attempt too many", facts: "send 0.9.1;got 0.9.1 1 2 b", want: "attempt 2 after 0"},
		{name: "never sent", facts: "got 0.9.1 1 1 b", want: "never sent"},
		{name: "a group in one batch", facts: "send 0.1.1;sent 0.1.1;send 0.1.2;sent 0.1.2;got 0.1.1 1 1 b;got 0.1.2 1 1 b;did ack 0.1.1;did ack 0.1.2"},
		{name: "a group out of order", facts: "send 0.1.1;sent 0.1.1;send 0.1.2;sent 0.1.2;got 0.1.2 1 1 b", want: "before \"0.1.1\""},
		{name: "a group while its first is held", facts: "send 0.1.1;sent 0.1.1;send 0.1.2;sent 0.1.2;got 0.1.1 1 1 b;got 0.1.2 1 1 c", want: "before \"0.1.1\""},
		{name: "a group after an unanswered ack", facts: "send 0.1.1;sent 0.1.1;send 0.1.2;sent 0.1.2;got 0.1.1 1 1 b;try ack 0.1.1|got 0.1.2 1 1 c;did ack 0.1.2"},
		{
			name: "dead", facts: "send 0.9.1;sent 0.9.1;got 0.9.1 1 1 b;did dead 0.9.1|",
			stats: forebay.QueueStats{Dead: 1}, dead: map[string]bool{"0.9.1": true},
		},
		{
			name: "a dead letter is lost", facts: "send 0.9.1;sent 0.9.1;got 0.9.1 1 1 b;did dead 0.9.1|",
			stats: forebay.QueueStats{Dead: 1}, dead: map[string]bool{}, want: "dead letter",
		},
		{name: "active after opening", facts: "ready|", stats: forebay.QueueStats{Active: 1}, want: "active"},
		{name: "a kept lease comes back early", facts: "send 0.9.1;got 0.9.1 1 1 b;keep r 9000000000000000000 0.9.1|got 0.9.1 2 1 c", want: "before its kept lease ends"},
		{name: "a kept lease has ended", facts: "send 0.9.1;got 0.9.1 1 1 b;keep r 1 0.9.1|got 0.9.1 2 1 c;did ack 0.9.1"},
		{name: "a kept lease that was perhaps settled", facts: "send 0.9.1;got 0.9.1 1 1 b;keep r 9000000000000000000 0.9.1;try retry 0.9.1|got 0.9.1 2 2 c;did ack 0.9.1"},
		{name: "a slow machine", facts: "send 0.9.1;got 0.9.1 1 1 b;keep r 1 0.9.1;try ack 0.9.1;lost ack 0.9.1|got 0.9.1 2 1 c;did ack 0.9.1"},
		{name: "the child complains", facts: "error what", want: "what"},
		{name: "nonsense", facts: "what 1", want: "no such message"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := playFacts(c.facts, c.stats, c.dead)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
		})
	}
}

func playFacts(facts string, stats forebay.QueueStats, dead map[string]bool) error {
	r := newKillRecord()
	for i, round := range strings.Split(facts, "|") {
		if i > 0 {
			r.endRound()
			if err := r.counts(stats); i == 1 && err != nil && !strings.Contains(facts, "|got") {
				return err
			}
		}
		for fact := range strings.SplitSeq(round, ";") {
			if fact == "" {
				continue
			}
			if err := r.fact(fact); err != nil {
				return err
			}
		}
	}
	return r.empty(dead)
}

func TestKillRecordOfJobs(t *testing.T) {
	const sent = "send 0.9.1;sent 0.9.1;got 0.9.1 1 1 b;"
	done := forebay.Job{State: forebay.StateCompleted, Result: []byte(`"0.9.1"`)}
	for _, c := range []struct {
		name, facts string
		job         forebay.Job
		want        string // empty: fair
	}{
		{name: "acked", facts: sent + "try ack 0.9.1;did ack 0.9.1", job: done},
		{name: "an unanswered ack was done", facts: sent + "try ack 0.9.1", job: done},
		{name: "an unanswered ack was not done", facts: sent + "try ack 0.9.1", job: forebay.Job{State: forebay.StateWaiting}},
		{name: "an answered ack is lost", facts: sent + "try ack 0.9.1;did ack 0.9.1", job: forebay.Job{State: forebay.StateWaiting}, want: "was acknowledged"},
		{name: "an answered cancel is a death", facts: sent + "try cancelled 0.9.1;did cancelled 0.9.1", job: forebay.Job{State: forebay.StateDead}, want: "was acknowledged"},
		{name: "nobody acked", facts: sent, job: done, want: "nobody tried"},
		{name: "another result", facts: sent + "try ack 0.9.1", job: forebay.Job{State: forebay.StateCompleted}, want: "with the result"},
		{name: "still active", facts: sent, job: forebay.Job{State: forebay.StateActive}, want: "after the opening"},
		{name: "a failure is forgotten", facts: sent + "try retry 0.9.1;did retry 0.9.1", job: forebay.Job{State: forebay.StateWaiting}, want: "0 times by the ledger"},
		{name: "no dead letter", facts: sent + "try dead 0.9.1", job: forebay.Job{State: forebay.StateDead, Attempts: 1}, want: "no dead letter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newKillRecord()
			for fact := range strings.SplitSeq(strings.Trim(c.facts, ";"), ";") {
				if err := r.fact(fact); err != nil {
					t.Fatal(err)
				}
			}
			r.endRound()
			c.job.ID = "0.9.1"
			err := r.told(&c.job)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestKillStory(t *testing.T) {
	event := func(typ forebay.HistoryType, state forebay.State) forebay.HistoryEvent {
		return forebay.HistoryEvent{Job: "a", Type: typ, State: state}
	}
	added, done := event(forebay.HistoryAdded, forebay.StateWaiting), event(forebay.HistoryCompleted, forebay.StateCompleted)
	for _, c := range []struct {
		events []forebay.HistoryEvent
		want   string
	}{
		{events: []forebay.HistoryEvent{added, event(forebay.HistoryRetry, forebay.StateWaiting), done}},
		{events: []forebay.HistoryEvent{added, done, done}, want: "and then"},
		{events: []forebay.HistoryEvent{added, done, event(forebay.HistoryStarted, forebay.StateActive)}, want: "and then"},
		{events: []forebay.HistoryEvent{added, added}, want: "2 times"},
		{events: []forebay.HistoryEvent{done}, want: "0 times"},
	} {
		var s killStory
		var err error
		for _, ev := range c.events {
			if err = s.event(ev); err != nil {
				break
			}
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: error %v, want %q", c.events, err, c.want)
		}
	}
}
