package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/api"
)

// Jobs that come together are answered as those that come one after the other; one
// with an Idempotency-Key keeps its promise.
func TestJobsTogetherAreAsOneAfterTheOther(t *testing.T) {
	together := func(w []http.ResponseWriter, r []*http.Request, s *server) {
		mux := http.NewServeMux()
		s.api.Register(mux)
		h, _ := mux.Handler(r[0])
		h.(interface {
			ServeTogether([]http.ResponseWriter, []*http.Request)
		}).ServeTogether(w, r)
	}
	alone := func(w []http.ResponseWriter, r []*http.Request, s *server) {
		mux := http.NewServeMux()
		s.api.Register(mux)
		for i := range r {
			mux.ServeHTTP(w[i], r[i])
		}
	}
	bodies := []string{
		`{"queue":"q","name":"n","data":{"a":1},"id":"one"}`,
		`{"queue":"q","name":"n","data":{"a":1},"id":"one"}`,
		`{"queue":"q","name":"n","delay":"1h","id":"two"}`,
		`{"queue":"","name":"n"}`,
		`{"queue":`,
		`{"queue":"q","name":"n","id":"three","dedup":{"key":"k"}}`,
		`{"queue":"q","name":"n","id":"four","dedup":{"key":"k"}}`,
		`{"queue":"q","name":"n","data":1}`, // with a key
		`{"queue":"q","name":"n","data":1}`, // with the same
		`{"queue":"q","name":"n","id":"five"}`,
	}
	answers := map[bool][]string{}
	for _, both := range []bool{false, true} {
		s := start(t, nil)
		var ws []http.ResponseWriter
		var rs []*http.Request
		for _, body := range bodies {
			r := httptest.NewRequest("POST", "http://localhost/api/jobs", strings.NewReader(body))
			if strings.Contains(body, `"data":1`) {
				r.Header.Set("Idempotency-Key", "k")
			}
			ws, rs = append(ws, httptest.NewRecorder()), append(rs, r)
		}
		if both {
			together(ws, rs, s)
		} else {
			alone(ws, rs, s)
		}
		for _, w := range ws {
			rec := w.(*httptest.ResponseRecorder)
			answers[both] = append(answers[both], http.StatusText(rec.Code)+" "+rec.Header().Get("Location")+" "+rec.Body.String())
		}
		if both && answers[both][7] != answers[both][8] {
			t.Errorf("one key, two answers: %s, %s", answers[both][7], answers[both][8])
		}
		q, err := s.Client.Queue(t.Context(), "q")
		if err != nil || q.Waiting+q.Delayed != 5 {
			t.Errorf("there are %+v, %v; want 5 jobs", q, err)
		}
	}
	for i := range bodies {
		if i != 7 && i != 8 && answers[false][i] != answers[true][i] { // those have new ids
			t.Errorf("%s\nalone    %s\ntogether %s", bodies[i], answers[false][i], answers[true][i])
		}
	}
}

// A malformed trace context costs no job, as W3C says; one in the body is a mistake.
func TestAMalformedTraceparentIsIgnored(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i, bad := range []string{"odd", "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"} {
		id := string(rune('a' + i))
		header := map[string]string{"Traceparent": bad}
		if r := s.do(t, "POST", "/api/jobs", `{"queue":"q","name":"n","id":"`+id+`"}`, header); r.status != 202 {
			t.Errorf("%s: %d %s", bad, r.status, r.body)
		}
		if r := s.do(t, "POST", "/api/jobs/bulk", `{"items":[{"queue":"q","name":"n","id":"`+id+`-bulk"}]}`, header); r.status != 200 || !strings.Contains(r.body, `"added":1`) {
			t.Errorf("%s in bulk: %d %s", bad, r.status, r.body)
		}
		for _, one := range []string{id, id + "-bulk"} {
			if j, err := s.broker.Job(t.Context(), one); err != nil || j.Job.Trace != "" {
				t.Errorf("%s: %+v %v", one, j, err)
			}
		}
	}
	if r := s.do(t, "POST", "/api/jobs", `{"queue":"q","name":"n","trace":"odd"}`, nil); r.status != 400 || !strings.Contains(r.body, "trace") {
		t.Errorf("in the body: %d %s", r.status, r.body)
	}
}

// A duplicate is told of the job that is there: when that one may begin counts.
func TestADuplicateIsEstimatedAsTheFirst(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.add(t, api.NewJob{Queue: "q", Name: "k"})
	held := s.lease(t, 1)[0].Receipt
	must[[]api.LeaseResult](t)(s.SettleLeases(t.Context(), api.SettleLeases{Items: []api.SettleLease{{Receipt: held, Verdict: "ack"}}}))
	key := &api.Dedup{Key: "d", Mode: "until_finished"}
	s.add(t, api.NewJob{Queue: "q", Name: "k", Dedup: key, Delay: api.Duration(time.Hour)})
	again := s.add(t, api.NewJob{Queue: "q", Name: "k", Dedup: key})
	if e := again.EstimatedSeconds; !again.Duplicate || e == nil || e.Low < 3000 {
		t.Errorf("%+v, estimated %+v", again, e)
	}
}
