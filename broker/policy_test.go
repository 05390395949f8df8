package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/forebayhq/forebay"
)

func policyBroker(cfg Config) *Broker {
	return &Broker{policy: cfg.Policy.over(defaultPolicy), queues: cfg.Queues, now: cfg.Now, rand: cfg.Rand}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	b := policyBroker(Config{
		Now:  func() time.Time { return now },
		Rand: func() float64 { return 1 },
		Queues: map[string]Policy{
			"once": Policy{Attempts: 1}.over(defaultPolicy),
			"few":  Policy{Deliveries: 4, Attempts: 10}.over(defaultPolicy),
		},
	})
	failed := errors.New("no luck")
	state := forebay.Because(forebay.Cause{Code: "23514", Detail: map[string]string{"column": "payload"}}, failed)
	for name, c := range map[string]struct {
		queue    string
		attempt  int
		attempts int // of the message
		handed   int // how often
		err      error
		verdict  forebay.Verdict
		after    time.Duration
		code     string
	}{
		"fine":                  {attempt: 1, verdict: forebay.Ack},
		"fine in the end":       {attempt: 10, verdict: forebay.Ack},
		"failed":                {attempt: 1, err: failed, verdict: forebay.Retry, after: time.Second, code: "handler"},
		"failed again":          {attempt: 4, err: failed, verdict: forebay.Retry, after: 8 * time.Second, code: "handler"},
		"at the cap":            {attempt: 50, attempts: 1000, err: failed, verdict: forebay.Retry, after: 5 * time.Minute, code: "handler"},
		"far beyond the cap":    {attempt: 999, attempts: 1000, err: failed, verdict: forebay.Retry, after: 5 * time.Minute, code: "handler"},
		"used up":               {attempt: 10, err: failed, verdict: forebay.Dead, code: "handler"},
		"the message's limit":   {attempt: 2, attempts: 2, err: failed, verdict: forebay.Dead, code: "handler"},
		"the queue's limit":     {queue: "once", attempt: 1, err: failed, verdict: forebay.Dead, code: "handler"},
		"message before queue":  {queue: "once", attempt: 1, attempts: 2, err: failed, verdict: forebay.Retry, after: time.Second, code: "handler"},
		"hand-outs used up":     {queue: "few", attempt: 3, handed: 4, err: failed, verdict: forebay.Dead, code: "handler"},
		"one hand-out left":     {queue: "few", attempt: 3, handed: 3, err: failed, verdict: forebay.Retry, after: 4 * time.Second, code: "handler"},
		"many attempts":         {attempt: 49, attempts: 50, handed: 70, err: failed, verdict: forebay.Retry, after: 5 * time.Minute, code: "handler"},
		"permanent":             {attempt: 1, err: forebay.Permanent(failed), verdict: forebay.Dead, code: "handler"},
		"permanent, with cause": {attempt: 1, err: forebay.Permanent(state), verdict: forebay.Dead, code: "23514"},
		"cause":                 {attempt: 1, err: fmt.Errorf("row 3: %w", state), verdict: forebay.Retry, after: time.Second, code: "23514"},
		"own wait":              {attempt: 1, err: forebay.RetryAfter(time.Hour, failed), verdict: forebay.Retry, after: time.Hour, code: "handler"},
		"own wait, used up":     {attempt: 10, err: forebay.RetryAfter(time.Hour, failed), verdict: forebay.Dead, code: "handler"},
		"own wait, too long":    {attempt: 1, err: forebay.RetryAfter(1<<62, failed), verdict: forebay.Retry, after: forebay.MaxDelay, code: "handler"},
		"own wait, negative":    {attempt: 1, err: forebay.RetryAfter(-1, failed), verdict: forebay.Retry, code: "handler"},
		"snooze":                {attempt: 10, err: forebay.Snooze(time.Minute), verdict: forebay.Release, after: time.Minute},
		"draining":              {attempt: 10, err: fmt.Errorf("%w: query cancelled", forebay.ErrDraining), verdict: forebay.Release},
		"lease lost":            {attempt: 10, err: forebay.ErrLeaseLost, verdict: forebay.Release},
		"cancelled":             {attempt: 1, err: fmt.Errorf("%w: query cancelled", forebay.ErrCancelled), verdict: forebay.Cancelled, code: "cancelled"},
		"cancelled, no reason":  {attempt: 1, err: forebay.ErrCancelled, verdict: forebay.Cancelled, code: "cancelled"},
		"cancels itself":        {attempt: 10, err: forebay.Cancel("no such user"), verdict: forebay.Cancelled, code: "cancelled"},
		"timeout":               {attempt: 2, err: forebay.ErrTimeout, verdict: forebay.Retry, after: 2 * time.Second, code: "timeout"},
		"timeout, used up":      {attempt: 10, err: forebay.ErrTimeout, verdict: forebay.Dead, code: "timeout"},
		"deadline":              {attempt: 1, err: forebay.ErrDeadline, verdict: forebay.Dead, code: "deadline"},
		"permanent at a drain":  {attempt: 1, err: forebay.Permanent(forebay.ErrDraining), verdict: forebay.Dead, code: "handler"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := forebay.Delivery{Receipt: "r", Attempt: c.attempt, Deliveries: c.handed}
			d.Queue, d.Limits.Attempts = c.queue, c.attempts
			s := b.Decide(d, c.err)
			if s.Receipt != "r" || s.Queue != c.queue || s.Verdict != c.verdict || s.After != c.after || s.Cause.Code != c.code {
				t.Errorf("got %+v; want %s after %s, code %q", s, c.verdict, c.after, c.code)
			}
			if c.code != "" {
				checkCause(t, s.Cause, now)
			}
		})
	}
}

func checkCause(t *testing.T, c forebay.Cause, at time.Time) {
	t.Helper()
	if c.Message == "" || !c.At.Equal(at) {
		t.Errorf("the cause is not whole: %+v", c)
	}
	if strings.Contains(c.Message, "forebay:") {
		t.Errorf("users of the job read %q", c.Message)
	}
}

func TestBackoffOfAJob(t *testing.T) {
	t.Parallel()
	b := policyBroker(Config{
		Rand: func() float64 { return 0 },
		Now:  time.Now,
		Queues: map[string]Policy{
			"even": Policy{Backoff: forebay.BackoffFixed, Base: 7 * time.Second, Jitter: 1e-9}.over(defaultPolicy),
			"func": Policy{Wait: func(d *forebay.Delivery, err error) time.Duration {
				return time.Duration(d.Attempt) * time.Duration(len(err.Error())) * time.Minute
			}}.over(defaultPolicy),
		},
	})
	const none = 1e-12 // of jitter
	for name, c := range map[string]struct {
		queue   string
		own     forebay.Backoff
		attempt int
		want    time.Duration
	}{
		"the default's least":     {attempt: 3, want: 400 * time.Millisecond},
		"exponential":             {own: forebay.Backoff{Base: time.Minute, Jitter: none}, attempt: 2, want: 2 * time.Minute},
		"capped at 5 minutes":     {own: forebay.Backoff{Base: time.Minute, Jitter: none}, attempt: 9, want: 5 * time.Minute},
		"a cap of its own":        {own: forebay.Backoff{Base: time.Minute, Cap: time.Hour, Jitter: none}, attempt: 9, want: time.Hour},
		"a base beyond the cap":   {own: forebay.Backoff{Base: time.Hour, Jitter: none}, attempt: 1, want: time.Hour},
		"fixed":                   {own: forebay.Backoff{Kind: forebay.BackoffFixed, Base: time.Second, Jitter: none}, attempt: 9, want: time.Second},
		"jitter":                  {own: forebay.Backoff{Kind: forebay.BackoffFixed, Base: time.Second, Jitter: 0.25}, attempt: 9, want: 750 * time.Millisecond},
		"all of it random":        {own: forebay.Backoff{Base: time.Second, Jitter: 1}, attempt: 1, want: time.Millisecond},
		"the queue's":             {queue: "even", attempt: 5, want: 7 * time.Second},
		"its own kind only":       {queue: "even", own: forebay.Backoff{Kind: forebay.BackoffExponential}, attempt: 2, want: 14 * time.Second},
		"a function":              {queue: "func", attempt: 3, want: 21 * time.Minute},
		"its own, not a function": {queue: "func", own: forebay.Backoff{Kind: forebay.BackoffFixed, Jitter: none}, attempt: 3, want: time.Second},
	} {
		d := forebay.Delivery{Attempt: c.attempt, Message: forebay.Message{Queue: c.queue, Job: &forebay.JobOptions{Backoff: c.own}}}
		s := b.Decide(d, errors.New("no luck"))
		if diff := s.After - c.want; s.Verdict != forebay.Retry || diff > time.Millisecond || diff < -time.Millisecond {
			t.Errorf("%s: %s after %s, want %s", name, s.Verdict, s.After, c.want)
		}
	}
}

func TestResultOfAJob(t *testing.T) {
	t.Parallel()
	b := policyBroker(Config{Now: time.Now, Rand: func() float64 { return 0 }})
	large := []byte(`"` + strings.Repeat("x", forebay.MaxResultBytes) + `"`)
	for name, c := range map[string]struct {
		job     bool
		result  []byte
		err     error
		verdict forebay.Verdict
		code    string
		kept    string
	}{
		"kept":      {true, []byte(`{"a":1}`), nil, forebay.Ack, "", `{"a":1}`},
		"none":      {true, nil, nil, forebay.Ack, "", ""},
		"no job":    {false, []byte("whatever"), nil, forebay.Ack, "", ""},
		"not JSON":  {true, []byte("{a}"), nil, forebay.Dead, "bad_result", ""},
		"too large": {true, large, nil, forebay.Dead, "bad_result", ""},
		"failed":    {true, []byte("1"), errors.New("no"), forebay.Retry, "handler", ""},
	} {
		d := forebay.Delivery{Attempt: 1}
		if c.job {
			d.Job = &forebay.JobOptions{}
		}
		s := b.DecideJob(d, c.result, c.err)
		if s.Verdict != c.verdict || s.Cause.Code != c.code || string(s.Result) != c.kept {
			t.Errorf("%s: got %s, code %q, result %q", name, s.Verdict, s.Cause.Code, s.Result)
		}
		if c.job && c.code != "" && s.Cause.Attempt != 1 {
			t.Errorf("%s: the cause names attempt %d", name, s.Cause.Attempt)
		}
	}
}

func TestBackoffIsNeverZeroAndSpreads(t *testing.T) {
	t.Parallel()
	p := Policy{}.over(defaultPolicy)
	for attempt := range 2000 {
		low, high := p.backoff(attempt, 0), p.backoff(attempt, 0.999999)
		if low <= 0 || low > high || high > p.Cap {
			t.Fatalf("attempt %d waits %s to %s", attempt, low, high)
		}
		if high < 9*low {
			t.Fatalf("attempt %d spreads over %s to %s only", attempt, low, high)
		}
	}
}

func TestPolicyProblemsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	bad := Policy{
		Attempts: -1, Deliveries: -2, Base: time.Hour, Factor: 0.5, Cap: time.Minute, Jitter: 2, Backoff: "slow", Timeout: -1,
		Keep: forebay.Retention{Dead: forebay.Keep{None: true}},
	}
	err := bad.over(defaultPolicy).check("queues.mail")
	for _, field := range []string{"attempts", "deliveries", "base", "factor", "jitter", "backoff", "timeout", "keep.dead.none"} {
		if !strings.Contains(fmt.Sprint(err), "queues.mail."+field) {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
	if err := defaultPolicy.check("policy"); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
}

func TestLimitsLeaveRoomForAllAttempts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message, queue       forebay.Limits
		attempts, deliveries int
	}{
		"default":             {attempts: 10, deliveries: 20},
		"many attempts":       {message: forebay.Limits{Attempts: 50}, attempts: 50, deliveries: 100},
		"few attempts":        {message: forebay.Limits{Attempts: 1}, attempts: 1, deliveries: 20},
		"the queue's":         {queue: forebay.Limits{Attempts: 3, Deliveries: 4}, attempts: 3, deliveries: 4},
		"the message's first": {message: forebay.Limits{Deliveries: 9}, queue: forebay.Limits{Deliveries: 4}, attempts: 10, deliveries: 9},
	} {
		p := Policy{Attempts: c.queue.Attempts, Deliveries: c.queue.Deliveries}.over(defaultPolicy)
		attempts, deliveries := p.limits(&forebay.Message{Limits: c.message})
		if attempts != c.attempts || deliveries != c.deliveries {
			t.Errorf("%s: got %d attempts, %d deliveries; want %d, %d", name, attempts, deliveries, c.attempts, c.deliveries)
		}
	}
}

func TestCausesAreBounded(t *testing.T) {
	t.Parallel()
	detail := make(map[string]string)
	for i := range 100 {
		detail[fmt.Sprint(i)] = strings.Repeat("ü", 10_000)
	}
	c := bounded(forebay.Cause{Code: strings.Repeat("c", 100), Message: strings.Repeat("ü", 10_000), Detail: detail})
	if len(c.Code) > maxCauseCode || len(c.Message) > maxCauseMessage+4 || len(c.Detail) != maxCauseDetails {
		t.Errorf("too large: code %d, message %d, details %d", len(c.Code), len(c.Message), len(c.Detail))
	}
	for _, v := range c.Detail {
		if len(v) > maxCauseDetail+4 || !utf8.ValidString(v) {
			t.Errorf("a detail has %d bytes, valid: %t", len(v), utf8.ValidString(v))
		}
	}
	if !utf8.ValidString(c.Message) {
		t.Error("the message is cut within a character")
	}
}
