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
