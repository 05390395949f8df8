package broker

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Timeout is how long one attempt of a job may take: its own, else its queue's;
// 0: as long as it likes. Messages that are no jobs have none.
func (b *Broker) Timeout(m *forebay.Message) time.Duration {
	if m.Job == nil {
		return 0
	}
	if m.Job.Timeout > 0 {
		return m.Job.Timeout
	}
	return b.policyOf(m.Queue).Timeout
}

// fillJob gives a job what the engine has to know of its queue's policy: how long
// it is kept. The rest of the policy is looked up when it is needed, so that a
// change of settings holds for jobs that wait too.
func (b *Broker) fillJob(m *forebay.Message) {
	if m.Job == nil {
		return
	}
	keep := m.Job.Keep
	p := b.policyOf(m.Queue)
	fill(&keep.Finished, p.Keep.Finished)
	fill(&keep.Dead, p.Keep.Dead)
	if keep == m.Job.Keep {
		return
	}
	options := *m.Job
	options.Keep = keep
	m.Job = &options
}

func (b *Broker) checkMessage(m *forebay.Message, now time.Time) error {
	if m.Job != nil && b.able.jobs == nil {
		return noLedger()
	}
	return engine.CheckMessage(m, now)
}

// DecideJob says how the delivery of a job ends after its handler returned result
// and err. It is as Decide, and a job that is done keeps its result. A result that
// cannot be kept makes the job dead: to run it again would not mend that, and to
// drop the result would hide it.
func (b *Broker) DecideJob(d forebay.Delivery, result []byte, err error) forebay.Settlement {
	if err == nil && d.Job != nil {
		if bad := engine.CheckResult(result); bad != nil {
			err = forebay.Permanent(forebay.Because(forebay.Cause{Code: codeResult}, bad))
		}
	}
	s := b.Decide(d, err)
	if s.Verdict == forebay.Ack && d.Job != nil {
		s.Result = result
	}
	return s
}
