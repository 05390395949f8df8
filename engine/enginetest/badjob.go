package enginetest

import (
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func badJobCases() []testCase {
	return []testCase{
		{name: "bad job/each bad option is refused by itself", invariants: []int{8}, needs: Ledger, run: badOptions},
		{name: "bad job/options at their bounds", needs: Ledger, run: badJustAllowed},
		{name: "bad job/one bad update never spoils the call", invariants: []int{8}, needs: Ledger, run: badProgress},
		{name: "bad job/calls that are too long", invariants: []int{8}, needs: Ledger, run: badLong},
		{name: "bad job/calls of nothing", invariants: []int{8}, needs: Ledger, run: badEmpty},
		{name: "bad job/a reason must be plain text", needs: Ledger, run: badReason},
	}
}

// badJobs are jobs that must be refused, by what is wrong with them.
func badJobs() map[string]forebay.Message {
	now, bad := time.Now(), make(map[string]forebay.Message)
	for name, f := range map[string]func(o *forebay.JobOptions){
		"a negative timeout":      func(o *forebay.JobOptions) { o.Timeout = -1 },
		"a timeout of years":      func(o *forebay.JobOptions) { o.Timeout = forebay.MaxDelay + 1 },
		"a far deadline":          func(o *forebay.JobOptions) { o.Deadline = now.Add(forebay.MaxDelay + time.Hour) },
		"a far expiry":            func(o *forebay.JobOptions) { o.Expires = now.Add(forebay.MaxDelay + time.Hour) },
		"an expiry past deadline": func(o *forebay.JobOptions) { o.Expires, o.Deadline = now.Add(2*time.Hour), now.Add(time.Hour) },
		"an unknown dedup mode":   func(o *forebay.JobOptions) { o.Dedup = "sometimes" },
		"a mode without a key":    func(o *forebay.JobOptions) { o.Dedup = forebay.DedupThrottle },
		"an unknown backoff":      func(o *forebay.JobOptions) { o.Backoff.Kind = "sometimes" },
		"a base over the cap":     func(o *forebay.JobOptions) { o.Backoff.Base, o.Backoff.Cap = 2, 1 },
		"a jitter over one":       func(o *forebay.JobOptions) { o.Backoff.Jitter = 1.1 },
		"a long tenant":           func(o *forebay.JobOptions) { o.Tenant = strings.Repeat("x", forebay.MaxIDBytes+1) },
		"an owner that is no text": func(o *forebay.JobOptions) {
			o.Owner = "\xff"
		},
		"a parent with a line":  func(o *forebay.JobOptions) { o.Parent = "a\nb" },
		"too many tags":         func(o *forebay.JobOptions) { o.Tags = make([]string, forebay.MaxTags+1) },
		"an empty tag":          func(o *forebay.JobOptions) { o.Tags = []string{""} },
		"a long tag":            func(o *forebay.JobOptions) { o.Tags = []string{strings.Repeat("x", forebay.MaxTagBytes+1)} },
		"a trace that is none":  func(o *forebay.JobOptions) { o.Trace = "trace" },
		"a negative age":        func(o *forebay.JobOptions) { o.Keep.Finished.Age = -1 },
		"a negative count":      func(o *forebay.JobOptions) { o.Keep.Dead.Count = -1 },
		"dead ones not kept":    func(o *forebay.JobOptions) { o.Keep.Dead.None = true },
		"an expiry before that": nil,
	} {
		if f == nil {
			bad[name] = job(name, notBefore(now.Add(time.Hour)), expires(now.Add(time.Minute)))
			continue
		}
		bad[name] = job(name, opts(f))
	}
	return bad
}

func badOptions(v *env) {
	var msgs []forebay.Message
	for _, m := range badJobs() {
		msgs = append(msgs, job("before "+m.ID), m)
	}
	msgs = append(msgs, job("last"))
	res, err := v.e.Send(v.ctx, msgs)
	if err != nil || len(res) != len(msgs) {
		v.failf("send of good and bad jobs gave %d results, %v", len(res), err)
	}
	for i, m := range msgs {
		if good := i%2 == 0; good != (res[i].Err == nil) {
			v.failf("send of %q gave %+v", m.ID, res[i])
		}
		if i%2 == 1 {
			if forebay.CodeOf(res[i].Err) != forebay.CodeInvalid {
				v.failf("%q was refused as %v, want code invalid", m.ID, res[i].Err)
			}
			v.noJob(m.ID)
			v.stores(job(m.ID)) // it left no record
		}
	}
	v.is(forebay.StateWaiting, "last")
	v.counts(testQueue, int64(len(msgs)), 0, 0, 0)
}

func badJustAllowed(v *env) {
	now := time.Now()
	m := job("a", withKey("k"), opts(func(o *forebay.JobOptions) {
		long := strings.Repeat("x", forebay.MaxIDBytes)
		*o = forebay.JobOptions{
			Timeout: forebay.MaxDelay, Deadline: now.Add(forebay.MaxDelay - time.Hour), Expires: now.Add(forebay.MaxDelay - time.Hour),
			Backoff: forebay.Backoff{Kind: forebay.BackoffExponential, Base: forebay.MaxDelay, Cap: forebay.MaxDelay, Jitter: 1},
			Dedup:   forebay.DedupKeepLast, Tenant: long, Owner: long, Parent: long,
			Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
			Keep:  forebay.Retention{Finished: forebay.Keep{Age: 1 << 62, Count: 1 << 30, None: true}},
		}
		for i := range forebay.MaxTags {
			o.Tags = append(o.Tags, strings.Repeat(string(rune('a'+i)), forebay.MaxTagBytes))
		}
	}))
	v.stores(m)
	v.sameOptions(v.job("a").Job, m.Job)
	v.ack(v.one("a"))
}

func badProgress(v *env) {
	v.add("a", "b")
	ds := v.one2("a", "b")
	bad := func(change func(u *forebay.ProgressUpdate)) forebay.ProgressUpdate {
		u := saying(ds[0], "bad", 50)
		change(&u)
		return u
	}
	got := v.progress(
		bad(func(u *forebay.ProgressUpdate) { u.Progress.Percent = 100.5 }),
		saying(ds[1], "good", 1),
		bad(func(u *forebay.ProgressUpdate) { u.Progress.Percent = -1 }),
		bad(func(u *forebay.ProgressUpdate) { u.Progress.Stage = strings.Repeat("x", forebay.MaxStageBytes+1) }),
		bad(func(u *forebay.ProgressUpdate) { u.Progress.Message = strings.Repeat("x", forebay.MaxTextBytes+1) }),
		bad(func(u *forebay.ProgressUpdate) { u.Progress.Data = []byte("{") }),
		bad(func(u *forebay.ProgressUpdate) {
			u.Progress.Data = []byte(`"` + strings.Repeat("x", forebay.MaxProgressBytes) + `"`)
		}),
		bad(func(u *forebay.ProgressUpdate) {
			u.Log = []forebay.LogLine{{Text: strings.Repeat("x", forebay.MaxLogBytes+1)}}
		}),
		bad(func(u *forebay.ProgressUpdate) { u.Receipt = "" }),
		saying(ds[1], "better", 2),
	)
	v.codes(got, forebay.CodeInvalid, "", forebay.CodeInvalid, forebay.CodeInvalid, forebay.CodeInvalid, forebay.CodeInvalid,
		forebay.CodeTooLarge, forebay.CodeInvalid, forebay.CodeLeaseLost, "")
	v.says("b", "better", 2)
	if p := v.job("a").Progress; p.Stage != "" {
		v.failf("what was refused is told: %+v", p)
	}
}

func badLong(v *env) {
	v.add("a")
	d := v.one("a")
	jobs := able[engine.Jobs](v)
	_, cancel := jobs.Cancel(v.ctx, ids("x", engine.MaxCancel+1), "x")
	_, change := jobs.Change(v.ctx, make([]engine.JobChange, engine.MaxCancel+1))
	_, remove := jobs.Remove(v.ctx, ids("x", engine.MaxCancel+1))
	updates := make([]forebay.ProgressUpdate, engine.MaxProgress+1)
	updates[0] = saying(d, "x", 1)
	_, progress := jobs.Progress(v.ctx, updates)
	for name, err := range map[string]error{"cancel": cancel, "change": change, "remove": remove, "progress": progress} {
		if forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("a %s that is too long gave %v, want code invalid", name, err)
		}
	}
	if p := v.job("a").Progress; p.Stage != "" {
		v.failf("a call that was refused was done in part: %+v", p)
	}
	v.cancel("x", ids("x", engine.MaxCancel)...) // just allowed
}

func badEmpty(v *env) {
	v.cancel("x")
	v.change()
	v.progress()
	v.removeJobs()
	v.noJob("")
	v.add("a")
	v.codes(v.change(engine.JobChange{ID: "a"}), "") // nothing is asked for
	v.is(forebay.StateWaiting, "a")
}

func badReason(v *env) {
	v.add("a", "b")
	for _, reason := range []string{strings.Repeat("x", forebay.MaxTextBytes+1), "\xff", "a\x00b"} {
		if res, err := able[engine.Jobs](v).Cancel(v.ctx, []string{"a"}, reason); forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("a cancel because of %.20q gave %+v, %v; want code invalid", reason, res, err)
		}
	}
	v.is(forebay.StateWaiting, "a")
	for id, reason := range map[string]string{"a": strings.Repeat("ü", forebay.MaxTextBytes/2), "b": ""} {
		res, err := able[engine.Jobs](v).Cancel(v.ctx, []string{id}, reason)
		if err != nil || res[0].Err != nil {
			v.failf("cancel because of %.20q gave %+v, %v", reason, res, err)
		}
		if got := v.job(id).Cause.Message; !strings.Contains(got, reason) || got == "" {
			v.failf("the reason is told as %.40q", got)
		}
	}
}
