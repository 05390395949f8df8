package outbox

import (
	"time"

	"github.com/forebayhq/forebay"
)

// settledAfter is how old a message is at least when it is sent to another queue: older
// than keptWindow by far, or the local engine would take it for a duplicate of itself.
const settledAfter = time.Second

// refuse settles a message that the remote engine will never take. It becomes a dead
// letter of the queue that it was meant for, where the others of that queue are. A message
// dies where it is; so one that waits is sent to that queue of dead letters, in one step
// with its end here. From there it is forwarded once more, as a replay is, and dies.
func (e *Engine) refuse(s *forebay.Settlement, d *forebay.Delivery, why error) {
	age := time.Since(d.SentAt)
	switch {
	case e.replayed(d) || d.DedupWindow != keptWindow: // it is there; or of an older version
		s.Verdict, s.Cause = forebay.Dead, forebay.Cause{Code: "outbox", Message: why.Error(), At: time.Now()}
	case age < settledAfter:
		s.Verdict, s.After = forebay.Release, min(settledAfter-age, settledAfter)
	default:
		original := e.forRemote(&d.Message)
		m := e.forLocal(&original, true)
		m.Group, m.NotBefore, m.DedupKey, m.Fingerprint = "", time.Time{}, "", 0 // it holds up nothing
		s.Next = []forebay.Message{m}
	}
}
