package enginetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// killRecord is what the parent of a kill test knows: what was acknowledged, and
// what may or may not have been done when the child died.
type killRecord struct {
	messages map[string]*killMessage
	groups   map[string][]*killMessage // in the order of sending
	known    []string                  // ids acknowledged as sent
	keeps    bool                      // leases may outlive the child

	sent, acked, dead, retried, delivered, late int
}

type killMessage struct {
	id         string
	sent       bool           // acknowledged, or seen
	trying     map[string]int // verdicts whose answers have not come; of several consumers in turn
	ended      string         // ack, dead or cancelled, acknowledged
	batch      string         // of its last delivery
	deliveries int
	given      int // releases since the last delivery, each of which gives one back
	attempts   int // failures, acknowledged
	maybe      int // failures whose answer never came

	receipt forebay.Receipt // of a kept lease that it is surely under, until its time
	until   time.Time
}

// unsure tells whether it was about to end when last heard of.
func (m *killMessage) unsure() bool {
	return m.trying["ack"]+m.trying["dead"]+m.trying["cancelled"] > 0
}

func newKillRecord() *killRecord {
	return &killRecord{messages: make(map[string]*killMessage), groups: make(map[string][]*killMessage)}
}

func (r *killRecord) String() string {
	return fmt.Sprintf("%d sent, %d delivered, %d acked, %d dead, %d retried, %d acked under a kept lease after the kill",
		r.sent, r.delivered, r.acked, r.dead, r.retried, r.late)
}

// fact takes in one line of a child and says what is wrong with it.
func (r *killRecord) fact(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "ready":
		return nil
	case "error":
		return fmt.Errorf("the child says: %s", rest)
	case "send":
		m := &killMessage{id: rest, trying: make(map[string]int)}
		r.messages[rest] = m
		if g := killGroup(rest); g != "" {
			r.groups[g] = append(r.groups[g], m)
		}
		return nil
	case "got":
		return r.got(rest)
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return fmt.Errorf("no such fact: %q", line)
	}
	m := r.messages[words[len(words)-1]]
	if m == nil {
		return fmt.Errorf("no such message: %q", line)
	}
	switch word {
	case "sent":
		m.sent = true
		r.sent++
		r.known = append(r.known, m.id)
	case "keep":
		return m.keep(words)
	case "lost":
		m.trying[words[0]]--
	case "try":
		m.receipt = ""
		m.trying[words[0]]++
		if words[0] == "release" {
			m.given++
		}
	case "did":
		r.did(m, words[0])
	default:
		return fmt.Errorf("no such fact: %q", line)
	}
	return nil
}

func (r *killRecord) did(m *killMessage, verdict string) {
	m.trying[verdict]--
	switch verdict {
	case "ack":
		m.ended = verdict
		r.acked++
	case "cancelled":
		m.ended = verdict
	case "dead":
		m.ended = verdict
		r.dead++
	case "retry":
		m.attempts++
		r.retried++
	}
}

// got checks a delivery: id, deliveries, attempt, batch.
func (r *killRecord) got(rest string) error {
	var id, batch string
	var deliveries, attempt int
	if _, err := fmt.Sscan(rest, &id, &deliveries, &attempt, &batch); err != nil {
		return fmt.Errorf("no such fact: got %q: %w", rest, err)
	}
	m := r.messages[id]
	switch {
	case m == nil:
		return fmt.Errorf("%q was delivered and never sent", id)
	case m.ended != "":
		return fmt.Errorf("%q was delivered after its %s was acknowledged", id, m.ended)
	case m.receipt != "" && time.Now().Before(m.until):
		return fmt.Errorf("%q was delivered %v before its kept lease ends", id, time.Until(m.until))
	case deliveries <= m.deliveries-m.given:
		return fmt.Errorf("%q was delivered for time %d after time %d", id, deliveries, m.deliveries)
	case attempt <= m.attempts || attempt > m.attempts+m.maybe+m.trying["retry"]+1:
		return fmt.Errorf("%q was delivered as attempt %d after %d to %d failures", id, attempt, m.attempts, m.attempts+m.maybe)
	}
	if err := r.inOrder(m, batch); err != nil {
		return err
	}
	// Coming again, it has surely not ended.
	m.trying["ack"], m.trying["dead"], m.trying["cancelled"] = 0, 0, 0
	m.deliveries, m.given, m.batch, m.sent, m.receipt = deliveries, 0, batch, true, ""
	r.delivered++
	return nil
}

// inOrder wants all that were sent before a message of its group ended, or in the
// same batch before it.
func (r *killRecord) inOrder(m *killMessage, batch string) error {
	group := killGroup(m.id)
	if group == "" {
		return nil
	}
	// What surely ended at the head is never looked at again.
	all := r.groups[group]
	for len(all) > 0 && all[0].ended != "" {
		all = all[1:]
	}
	r.groups[group] = all
	for _, before := range all {
		if before == m {
			return nil
		}
		mayBeGone := before.ended != "" || !before.sent || before.unsure()
		if !mayBeGone && before.batch != batch {
			return fmt.Errorf("%q was delivered before %q of its group, which has not ended", m.id, before.id)
		}
	}
	return nil
}

// endRound takes in that the child is dead: a retry or release that was tried is
// unsure until the message is seen again.
func (r *killRecord) endRound() {
	for _, m := range r.messages {
		m.maybe += m.trying["retry"]
		m.trying["retry"], m.trying["release"] = 0, 0
	}
}

// counts holds what a store counts against what it must have and may have.
func (r *killRecord) counts(s forebay.QueueStats) error {
	there, perhaps, dying := 0, 0, 0
	for _, m := range r.messages {
		switch {
		case m.ended != "":
		case m.sent && !m.unsure():
			there++
		default:
			perhaps++
			if m.trying["dead"] > 0 {
				dying++
			}
		}
	}
	if s.Active != 0 && !r.keeps {
		return fmt.Errorf("the store has %d active messages after its opening", s.Active)
	}
	if n := int(s.Waiting + s.Delayed + s.Active); n < there || n > there+perhaps {
		return fmt.Errorf("the store has %d messages, want %d and at most %d more", n, there, perhaps)
	}
	if n := int(s.Dead); n < r.dead || n > r.dead+dying {
		return fmt.Errorf("the store has %d dead letters, want %d and at most %d more", n, r.dead, dying)
	}
	return nil
}

// empty wants all messages ended, when nothing comes any more.
func (r *killRecord) empty(dead map[string]bool) error {
	for _, m := range r.messages {
		switch {
		case m.ended == "dead" && dead != nil && !dead[m.id]:
			return fmt.Errorf("dead letter %q is lost", m.id)
		case m.ended == "ack" && dead[m.id]:
			return fmt.Errorf("%q was acked and is a dead letter", m.id)
		case m.ended == "" && m.sent && !m.unsure():
			return fmt.Errorf("%q was acknowledged as sent, and is lost", m.id)
		case m.ended == "" && m.trying["dead"] > 0 && dead != nil && !dead[m.id]:
			return fmt.Errorf("%q was about to die and is neither there nor dead", m.id)
		}
	}
	return nil
}

// some picks ids that were acknowledged as sent.
func (r *killRecord) some(rng *rand.Rand, n int) []string {
	if len(r.known) == 0 {
		return nil
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = r.known[rng.IntN(len(r.known))]
	}
	return ids
}
