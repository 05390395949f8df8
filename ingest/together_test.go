package ingest_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/keyring"
)

// postTogether gives a route several requests at once, and tells their answers.
func (r *rig) postTogether(path string, secret string, bodies ...string) (statuses []int, answers []string) {
	r.t.Helper()
	var ws []http.ResponseWriter
	var rs []*http.Request
	for _, body := range bodies {
		req := httptest.NewRequest("POST", path, strings.NewReader(body))
		if req.Header.Set("Authorization", "Bearer "+secret); secret == "" {
			req.Header.Del("Authorization")
		}
		ws, rs = append(ws, httptest.NewRecorder()), append(rs, req)
	}
	h, _ := r.mux.Handler(rs[0])
	h.(interface {
		ServeTogether([]http.ResponseWriter, []*http.Request)
	}).ServeTogether(ws, rs)
	for _, w := range ws {
		rec := w.(*httptest.ResponseRecorder)
		statuses, answers = append(statuses, rec.Code), append(answers, strings.TrimSpace(rec.Body.String()))
	}
	return statuses, answers
}

// Requests that are handled together are answered, and leave behind, what they would
// one after the other.
func TestRequestsTogetherAreAsOneAfterTheOther(t *testing.T) {
	bodies := []string{
		anEvent,
		`{"eventType":"a","payload":{},"eventId":"1"}`,
		`{"eventType":"a","payload":{},"eventId":"1"}`, // of the same moment
		`{"eventType":"a","payload":{"x":1},"eventId":"2"}`,
		`{"eventType":"b","eventId":"3"}`, // no payload
		`{"eventType":`,
		mixedBatch,
		threeEvents(),
		`[]`,
		``,
		`{"eventType":"a","payload":{"text":"\ud800"},"eventId":"4"}`,
	}
	for _, path := range []string{"/ingest/batch", "/ingest/event", "/v1/batch"} {
		one, together := newRig(t, nil), newRig(t, nil)
		statuses, answers := together.postTogether(path, "", bodies...)
		for i, body := range bodies {
			status, answer := one.post(path, body)
			if i == 0 { // its id is new each time
				answer, answers[i] = answer[:4], answers[i][:4]
			}
			if status != statuses[i] || answer != answers[i] {
				t.Errorf("%s %s\nalone    %d %s\ntogether %d %s", path, body, status, answer, statuses[i], answers[i])
			}
		}
		if len(one.queue.msgs) != len(together.queue.msgs) || len(one.badRows()) != len(together.badRows()) || !reflect.DeepEqual(one.seen.counts, together.seen.counts) {
			t.Errorf("%s: alone %d events, %d bad rows, %v; together %d, %d, %v", path, len(one.queue.msgs), len(one.badRows()), one.seen.counts,
				len(together.queue.msgs), len(together.badRows()), together.seen.counts)
		}
	}
}

// A queue that fails refuses each of them; what was spent of a key's quota is given back.
func TestRequestsTogetherFailTogether(t *testing.T) {
	r := newRig(t, nil)
	_, secret := r.key(keyring.Spec{Name: "k", DailyQuota: 5})
	r.queue.err = forebay.Errorf(forebay.CodeFull, "engine: send", "the disk is full")
	event := `{"eventType":"a","payload":{},"eventId":"1"}`
	for range 3 {
		statuses, answers := r.postTogether("/ingest/event", secret, event, `{"eventType":`, event)
		if !reflect.DeepEqual(statuses, []int{503, 400, 503}) {
			t.Fatalf("got %v %v", statuses, answers)
		}
	}
	r.queue.err = nil
	if statuses, answers := r.postTogether("/ingest/event", secret, event, strings.ReplaceAll(event, "1", "2")); !reflect.DeepEqual(statuses, []int{202, 202}) || len(r.queue.msgs) != 2 {
		t.Errorf("got %v %v, %d queued", statuses, answers, len(r.queue.msgs))
	}
}
