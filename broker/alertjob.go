package broker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/forebayhq/forebay"
)

// withAlert lets an alert ride with a verdict: it will appear with it or not at
// all. Settle holds back what would be a flood.
func (b *Broker) withAlert(s forebay.Settlement, d *forebay.Delivery, attempts int) forebay.Settlement {
	reason := AlertDead
	switch {
	case b.alertQueue == "" || b.isAlert(d.Queue, d.Kind):
		return s
	case s.Verdict == forebay.Retry && s.Cause.Code == codeTimeout:
		reason = AlertTimeout
	case s.Verdict != forebay.Dead:
		return s
	}
	al := Alert{
		ID: d.ID, Queue: d.Queue, Name: d.Kind, Error: s.Cause.Message, Code: s.Cause.Code,
		Attempts: attempts, Reason: reason, Count: 1, At: s.Cause.At,
	}
	if d.Job != nil {
		al.Owner = d.Job.Owner
	}
	if d.Job != nil && reason == AlertDead {
		b.alerts.ride(d.ID, al.At)
	}
	payload, err := json.Marshal(al)
	if err != nil { // no value of these types fails
		return s
	}
	s.Next = append(s.Next, forebay.Message{Queue: b.alertQueue, Kind: AlertKind, Payload: payload})
	return s
}

// isAlert tells what never alerts: an alert would follow the other.
func (b *Broker) isAlert(queue, kind string) bool { return queue == b.alertQueue && kind == AlertKind }

// riding is an alert of a settlement that is about to be stored.
type riding struct {
	admission
	alert Alert
	at    int // index of its settlement
}

// admitAlerts takes from settlements the alerts that are held back, and makes the
// others whole. It never changes s.
func (b *Broker) admitAlerts(s []forebay.Settlement) ([]forebay.Settlement, []riding) {
	if b.alertQueue == "" {
		return s, nil
	}
	var rides []riding
	given := s
	for i := range given {
		n := b.alertIn(given[i].Next)
		if n < 0 {
			continue
		}
		r := riding{at: i}
		if json.Unmarshal(given[i].Next[n].Payload, &r.alert) != nil {
			continue // somebody else's, of another form
		}
		if rides == nil {
			s = append([]forebay.Settlement(nil), given...)
		}
		al := r.alert
		r.admission = b.alerts.admit(&al, b.now())
		rides = append(rides, r)
		next := append([]forebay.Message(nil), given[i].Next[:n]...)
		if r.out {
			next = append(next, b.alertMessage(r.group, al))
		}
		s[i].Next = append(next, given[i].Next[n+1:]...)
	}
	return s, rides
}

// alertIn finds an alert that withAlert made, by its lack of an id.
func (b *Broker) alertIn(next []forebay.Message) int {
	for i := range next {
		if m := &next[i]; m.ID == "" && m.Queue == b.alertQueue && m.Kind == AlertKind {
			return i
		}
	}
	return -1
}

// undoAlerts takes back alerts whose settlements were not stored.
func (b *Broker) undoAlerts(rides []riding, errs []error, err error) {
	for _, r := range rides {
		if err != nil || errs[r.at] != nil {
			b.alerts.undo(r.admission, r.alert)
		}
	}
}

// alertMessage is the job that tells of an alert.
func (b *Broker) alertMessage(group string, al Alert) forebay.Message {
	payload, _ := json.Marshal(al) // no value of these types fails
	sum := sha256.Sum256([]byte(group))
	m := forebay.Message{
		Queue: b.alertQueue, Kind: AlertKind, Payload: payload,
		DedupKey: "alert/" + hex.EncodeToString(sum[:16]), DedupWindow: alertWindow,
	}
	if b.able.jobs != nil {
		m.Job = &forebay.JobOptions{
			Dedup: forebay.DedupThrottle, Owner: al.Owner, Parent: al.ID, Expires: b.now().Add(alertKept),
		}
	}
	return m
}

// hearDeaths looks for deaths that no verdict tells of.
func (b *Broker) hearDeaths(events []forebay.HistoryEvent) {
	if b.alertQueue == "" {
		return
	}
	for i := range events {
		if e := &events[i]; e.Type == forebay.HistoryDead && !b.isAlert(e.Queue, e.Kind) {
			b.alerts.died(e)
		} else if al, ok := dropped(e); ok {
			b.alerts.heard(al)
		}
	}
}

// tellDeaths alerts of them.
func (b *Broker) tellDeaths(ctx context.Context, now time.Time) {
	raised := make(map[string]Alert)
	for _, al := range b.alerts.takeDeaths() {
		if al.Reason != AlertDead || b.able.jobs == nil { // what was dropped is known no more
		} else if j, err := b.able.jobs.Job(ctx, al.ID); err == nil {
			al.Owner, al.Attempts = j.Job.Owner, j.Attempts
		}
		if ad := b.alerts.admit(&al, now); ad.out {
			raised[ad.group] = al
		}
	}
	_ = b.raise(ctx, raised)
}

// Tell alerts of what nobody here has found out. Within a minute a second one with the
// same key is told once only, over all servers that share the engine.
func (b *Broker) Tell(ctx context.Context, key string, al Alert) error {
	if b.alertQueue == "" {
		return nil
	}
	results, err := b.Send(ctx, []forebay.Message{b.alertMessage(key, al)})
	if err != nil {
		return err
	}
	return results[0].Err
}

// raise sends alerts that ride in no settlement, by group.
func (b *Broker) raise(ctx context.Context, all map[string]Alert) error {
	if len(all) == 0 {
		return nil
	}
	var groups []string
	var msgs []forebay.Message
	for group, al := range all {
		groups, msgs = append(groups, group), append(msgs, b.alertMessage(group, al))
	}
	results, err := b.Send(ctx, msgs)
	for i, group := range groups {
		if err != nil || results[i].Err != nil || results[i].Duplicate {
			b.alerts.giveBack(group, all[group])
		}
	}
	return err
}
