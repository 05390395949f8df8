package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine"
)

// When dead letters came is told in parts of a time; of a large group the newest, and since
// when none of it is left out. A group that has grown is read anew.
func TestArrivalsOfDeadLetters(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ask := func() (list api.DeadGroupList) {
		t.Helper()
		r := s.do(t, http.MethodGet, "/api/dead/groups?trend=1h&order=largest", "", map[string]string{"Authorization": "Bearer " + token})
		if err := json.Unmarshal([]byte(r.body), &list); r.status != 200 || err != nil {
			t.Fatal(r.status, err, r.body)
		}
		return list
	}
	sum := func(a *api.Arrivals) (n int) {
		for _, c := range a.Counts {
			n += c
		}
		return n
	}
	s.die(t, "few", "c", 3)
	few := ask().Items[0].Arrivals
	if len(few.Counts) != 24 || few.Counts[23] != 3 || sum(few) != 3 || !few.Whole.Equal(few.From) {
		t.Errorf("three that came just now are told as %+v", few)
	}
	s.die(t, "many", "c", 250)
	s.send(t, forebay.Message{ID: "another", Queue: "few", Kind: "k", Payload: []byte("{}")})
	ds := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: "few", Max: 1}))
	must[[]error](t)(s.broker.Settle(t.Context(), []forebay.Settlement{{Receipt: ds[0].Receipt, Queue: "few", Verdict: forebay.Dead, Cause: forebay.Cause{Code: "c", Message: "it does not fit", At: time.Now()}}}))
	list := ask()
	if many := list.Items[0]; many.Queue != "many" || sum(many.Arrivals) != 200 || !many.Arrivals.Whole.After(many.Arrivals.From) || time.Since(many.Arrivals.Whole) > time.Hour {
		t.Errorf("of 250 the newest 200 are told as %+v of %+v", many.Arrivals, many)
	}
	if grown := list.Items[1]; grown.Queue != "few" || grown.Count != 4 || sum(grown.Arrivals) != 4 {
		t.Errorf("a group that has grown is told as %+v of %+v", grown.Arrivals, grown)
	}
}
