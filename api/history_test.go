package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/history"
)

func TestHistory(t *testing.T) {
	s := startOn(t, must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{Log: sqlite.LogConfig{Age: time.Hour, Ages: map[string]time.Duration{"none": 0}}})), nil)
	for i := range 3 {
		s.add(t, api.NewJob{ID: fmt.Sprint("j", i), Queue: "mail", Name: "welcome"})
	}
	s.work(t, "mail", forebay.Ack)
	s.send(t, forebay.Message{ID: "e1", Queue: "events", Kind: "buy", Group: "user-1", Payload: []byte(`{"n":1}`)},
		forebay.Message{ID: "e2", Queue: "events", Kind: "open", Payload: []byte("no JSON")}, forebay.Message{ID: "n1", Queue: "none", Payload: []byte("{}")})

	for want, q := range map[string]api.HistoryQuery{
		"added j0, added j1, added j2, started j0, completed j0": {},
		"added j0, started j0, completed j0":                     {Job: "j0"},
		"added j1, added j2":                                     {Queue: "mail", Types: []string{"added"}, Kinds: []string{"welcome"}, From: "-1h", To: "now", After: 1},
		"sent e1, sent e2":                                       {Of: api.OfMessages, From: "1h"},
		"sent e1":                                                {Of: api.OfMessages, Key: "user-1"},
		"sent e2":                                                {Of: api.OfMessages, Types: []string{"open"}},
		"sent j0, sent j1, sent j2":                              {Of: api.OfMessages, Queue: "mail"},
		"":                                                       {Kinds: []string{"other"}},
	} {
		var got []string
		for q.Limit = 2; ; {
			page, err := s.History(t.Context(), q)
			if err != nil || page.Epoch == "" {
				t.Fatalf("%+v: %v", q, err)
			}
			for _, h := range page.Items {
				got = append(got, h.Type+" "+h.ID)
			}
			if q.After = page.Next; !page.More {
				break
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%+v gives %s, want %s", q, text, want)
		}
	}
	for field, q := range map[string]api.HistoryQuery{
		"of": {Of: "stars"}, "type": {Types: []string{"born"}}, "from": {From: "yesterday"}, "key": {Key: "k"}, "limit": {Limit: 1001},
		"to": {From: "-1h", To: "-2h"},
	} {
		if _, err := s.History(t.Context(), q); forebay.CodeOf(err) != forebay.CodeInvalid || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := s.History(t.Context(), api.HistoryQuery{Of: api.OfMessages, Queue: "none"}); forebay.CodeOf(err) != forebay.CodeUnsupported {
		t.Errorf("a queue without a log: %v", err)
	}
}

// All of it in one answer: many pages, each item once.
func TestAllHistory(t *testing.T) {
	s := startOn(t, must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{Log: sqlite.LogConfig{Age: time.Hour}})), nil)
	var msgs []forebay.Message
	for i := range 2500 {
		msgs = append(msgs, forebay.Message{ID: fmt.Sprint("e", i), Queue: "events", Kind: "buy", Payload: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	s.send(t, msgs...)
	plain := must[*api.Client](t)(api.NewClient(s.url, "", nil))
	n := 0
	err := plain.AllHistory(t.Context(), api.HistoryQuery{Of: api.OfMessages}, func(h *api.HistoryItem) error {
		if h.ID != fmt.Sprint("e", n) || string(h.Payload.JSON) != fmt.Sprintf(`{"n":%d}`, n) {
			t.Fatalf("item %d is %+v", n, h)
		}
		n++
		return nil
	})
	if err != nil || n != 2500 {
		t.Errorf("%d items, %v", n, err)
	}
	if err := plain.AllHistory(t.Context(), api.HistoryQuery{From: "soon"}, nil); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Errorf("a wrong time: %v", err)
	}
}

// What would end a replay at once, or leave it without any effect, is told before it is a job.
func TestReplayOfWhatIsNotThere(t *testing.T) {
	s := startOn(t, must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{Log: sqlite.LogConfig{Age: time.Hour, Ages: map[string]time.Duration{"none": 0}}})), func(cfg *api.Config) {
		cfg.Queues = []string{"named"}
		cfg.Replayable = func(r history.Request) error {
			if r.Into == history.IntoProjection {
				return forebay.Errorf(forebay.CodeNotFound, "", "no projection %q", r.Name)
			}
			return nil
		}
	})
	s.send(t, forebay.Message{ID: "n1", Queue: "none", Payload: []byte("{}")})
	for want, r := range map[string]api.HistoryReplay{
		"no projection \"orders\"": {Into: "projection", Name: "orders"},
		"no queue \"typo\"":        {Into: "queue", Name: "typo"},
		"no queue \"typo2\"":       {Into: "queue", Name: "named", Queue: "typo2"},
		"keeps no log":             {Into: "sink", Queue: "none"},
		"before it begins":         {Into: "sink", From: "-1h", To: "-2h"},
	} {
		if job, err := s.ReplayHistory(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %+v, %v", r, job, err)
		}
	}
	for _, r := range []api.HistoryReplay{{Into: "queue", Name: "named"}, {Into: "queue", Name: "none", DryRun: true}, {Into: "sink"}} {
		if job, err := s.ReplayHistory(t.Context(), r); err != nil || job.JobID == "" {
			t.Errorf("%+v: %+v, %v", r, job, err)
		}
	}
}
