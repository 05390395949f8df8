package engine

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
)

func TestCheckJob(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("x", 200)
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	type job = forebay.JobOptions
	for name, c := range map[string]struct {
		change func(m *forebay.Message, o *job)
		field  string // empty: it is fine
		says   string
	}{
		"plain":              {func(*forebay.Message, *job) {}, "", ""},
		"timeout":            {func(_ *forebay.Message, o *job) { o.Timeout = time.Hour }, "", ""},
		"negative timeout":   {func(_ *forebay.Message, o *job) { o.Timeout = -1 }, "job.timeout", "365 days"},
		"deadline":           {func(_ *forebay.Message, o *job) { o.Deadline, o.Expires = now.Add(2), now.Add(1) }, "", ""},
		"past deadline":      {func(_ *forebay.Message, o *job) { o.Deadline = now.Add(-time.Hour) }, "", ""},
		"far deadline":       {func(_ *forebay.Message, o *job) { o.Deadline = now.Add(forebay.MaxDelay + 1) }, "job.deadline", "365 days"},
		"far expiry":         {func(_ *forebay.Message, o *job) { o.Expires = now.Add(forebay.MaxDelay + 1) }, "job.expires", "365 days"},
		"expires after":      {func(_ *forebay.Message, o *job) { o.Deadline, o.Expires = now.Add(1), now.Add(2) }, "job.expires", "deadline"},
		"never runs":         {func(m *forebay.Message, o *job) { m.NotBefore, o.Expires = now.Add(time.Hour), now.Add(time.Hour) }, "job.expires", "never run"},
		"never ends":         {func(m *forebay.Message, o *job) { m.NotBefore, o.Deadline = now.Add(time.Hour), now.Add(time.Minute) }, "job.deadline", "never run"},
		"dedup":              {func(m *forebay.Message, o *job) { m.DedupKey, o.Dedup = "k", forebay.DedupDebounce }, "", ""},
		"dedup without key":  {func(_ *forebay.Message, o *job) { o.Dedup = forebay.DedupThrottle }, "job.dedup", "needs a dedup key"},
		"unknown dedup":      {func(m *forebay.Message, o *job) { m.DedupKey, o.Dedup = "k", "maybe" }, "job.dedup", "throttle"},
		"names":              {func(_ *forebay.Message, o *job) { o.Tenant, o.Owner, o.Parent = "t", "ü", "p" }, "", ""},
		"tenant":             {func(_ *forebay.Message, o *job) { o.Tenant = long }, "job.tenant", "at most 128"},
		"owner":              {func(_ *forebay.Message, o *job) { o.Owner = "a\nb" }, "job.owner", "control"},
		"parent":             {func(_ *forebay.Message, o *job) { o.Parent = "a\xff" }, "job.parent", "UTF-8"},
		"trace":              {func(_ *forebay.Message, o *job) { o.Trace = trace }, "", ""},
		"later trace":        {func(_ *forebay.Message, o *job) { o.Trace = "01" + trace[2:] + "-more" }, "", ""},
		"longer trace":       {func(_ *forebay.Message, o *job) { o.Trace = trace + "-more" }, "job.trace", "traceparent"},
		"trace in capitals":  {func(_ *forebay.Message, o *job) { o.Trace = strings.ToUpper(trace) }, "job.trace", "traceparent"},
		"trace of zeros":     {func(_ *forebay.Message, o *job) { o.Trace = "00-" + strings.Repeat("0", 32) + trace[35:] }, "job.trace", "traceparent"},
		"trace without span": {func(_ *forebay.Message, o *job) { o.Trace = trace[:36] + strings.Repeat("0", 16) + "-01" }, "job.trace", "traceparent"},
		"tags":               {func(_ *forebay.Message, o *job) { o.Tags = strings.Split(strings.Repeat("t", 16), "")[:16] }, "", ""},
		"many tags":          {func(_ *forebay.Message, o *job) { o.Tags = make([]string, 17) }, "job.tags", "17 tags"},
		"empty tag":          {func(_ *forebay.Message, o *job) { o.Tags = []string{"a", ""} }, "job.tags", "empty"},
		"long tag":           {func(_ *forebay.Message, o *job) { o.Tags = []string{long[:65]} }, "job.tags", "at most 64"},
		"backoff": {func(_ *forebay.Message, o *job) {
			o.Backoff = forebay.Backoff{Kind: "fixed", Base: 1, Cap: 1, Jitter: 1}
		}, "", ""},
		"backoff kind":  {func(_ *forebay.Message, o *job) { o.Backoff.Kind = "linear" }, "job.backoff.kind", "exponential"},
		"backoff base":  {func(_ *forebay.Message, o *job) { o.Backoff.Base = -1 }, "job.backoff.base", "365 days"},
		"backoff cap":   {func(_ *forebay.Message, o *job) { o.Backoff.Cap = forebay.MaxDelay + 1 }, "job.backoff.cap", "365 days"},
		"base over cap": {func(_ *forebay.Message, o *job) { o.Backoff = forebay.Backoff{Base: 2, Cap: 1} }, "job.backoff.base", "up to"},
		"jitter":        {func(_ *forebay.Message, o *job) { o.Backoff.Jitter = math.NaN() }, "job.backoff.jitter", "0 (the default) to 1"},
		"keep":          {func(_ *forebay.Message, o *job) { o.Keep.Finished.None, o.Keep.Dead.Count = true, 5 }, "", ""},
		"keep age":      {func(_ *forebay.Message, o *job) { o.Keep.Finished.Age = -1 }, "job.keep.finished.age", "or more"},
		"keep count":    {func(_ *forebay.Message, o *job) { o.Keep.Dead.Count = -1 }, "job.keep.dead.count", "or more"},
		"keep no dead":  {func(_ *forebay.Message, o *job) { o.Keep.Dead.None = true }, "job.keep.dead.none", "dead jobs are kept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := forebay.Message{ID: "1", Queue: "q", Kind: "k", Payload: []byte("{}"), Job: &forebay.JobOptions{}}
			c.change(&m, m.Job)
			field, text := told(CheckMessage(&m, now))
			if field != c.field || !strings.Contains(text, c.says) {
				t.Errorf("got %s, %q; want %s and %q in it", field, text, c.field, c.says)
			}
		})
	}
}

func told(err error) (field, text string) {
	e, ok := err.(*forebay.Error)
	if !ok {
		return "", fmt.Sprint(err)
	}
	return e.Field, e.Text
}

func TestCheckProgressAndResult(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	type progress = forebay.Progress
	for name, c := range map[string]struct {
		p     *progress
		line  string
		field string
	}{
		"nothing":     {},
		"whole":       {p: &progress{Stage: "s", Percent: 100, Message: "a\tb", Data: []byte("{}")}, line: long[:4096]},
		"more":        {p: &progress{Percent: 100.1}, field: "percent"},
		"not known":   {p: &progress{Percent: math.NaN()}, field: "percent"},
		"stage":       {p: &progress{Stage: long}, field: "stage"},
		"message":     {p: &progress{Message: long}, field: "message"},
		"two lines":   {p: &progress{Message: "a\nb"}, field: "message"},
		"not JSON":    {p: &progress{Data: []byte("{")}, field: "data"},
		"much data":   {p: &progress{Data: []byte(`"` + strings.Repeat(long, 4) + `"`)}, field: "data"},
		"a long line": {line: long, field: "log"},
	} {
		err := CheckProgress(&forebay.ProgressUpdate{Progress: c.p, Log: []forebay.LogLine{{Text: c.line}}})
		if field, text := told(err); field != c.field {
			t.Errorf("%s: got %s, %s; want %s", name, field, text, c.field)
		}
	}
	for result, code := range map[string]forebay.Code{
		"": "", "null": "", `{"a":[1]}`: "", "{": forebay.CodeInvalid, "a": forebay.CodeInvalid,
		`"` + strings.Repeat("x", forebay.MaxResultBytes): forebay.CodeTooLarge,
	} {
		if got := forebay.CodeOf(CheckResult([]byte(result))); got != code {
			t.Errorf("result %.20s: %s, want %s", result, got, code)
		}
	}
}

func TestCheckChange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	high, soon, never := forebay.Priority(11), now.Add(-time.Hour), now.Add(forebay.MaxDelay+1)
	for name, c := range map[string]struct {
		change JobChange
		field  string
	}{
		"nothing":  {JobChange{ID: "1"}, ""},
		"promote":  {JobChange{ID: "1", Due: &soon}, ""},
		"no id":    {JobChange{}, "id"},
		"priority": {JobChange{ID: "1", Priority: &high}, "priority"},
		"late":     {JobChange{ID: "1", Due: &never}, "notBefore"},
		"payload":  {JobChange{ID: "1", Payload: make([]byte, forebay.MaxPayloadBytes+1)}, "payload"},
	} {
		if field, text := told(CheckChange(&c.change, now)); field != c.field {
			t.Errorf("%s: got %s, %s; want %s", name, field, text, c.field)
		}
	}
}
