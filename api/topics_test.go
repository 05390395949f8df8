package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/stream"
)

// topics follows several streams over one connection; next gives the next event of one, told
// as its name, or its name:status. The connection's end gives "".
func (s *server) topics(t *testing.T, secret string, paths ...string) (next func(topic int) (string, string)) {
	t.Helper()
	req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), "GET", s.url+"/api/stream?"+url.Values{"topic": paths}.Encode(), nil))
	req.Header.Set("Authorization", "Bearer "+secret)
	resp := must[*http.Response](t)(http.DefaultClient.Do(req))
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%+v", resp)
	}
	lines := bufio.NewScanner(resp.Body)
	heard := map[int][]stream.Topic{}
	return func(topic int) (string, string) {
		t.Helper()
		for len(heard[topic]) == 0 {
			if !lines.Scan() {
				return "", ""
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var one stream.Topic
				if err := json.Unmarshal([]byte(data), &one); err != nil {
					t.Fatalf("%s: %v", data, err)
				}
				heard[one.Topic] = append(heard[one.Topic], one)
			}
		}
		one := heard[topic][0]
		heard[topic] = heard[topic][1:]
		var problem struct{ Status int }
		if one.Event == "fail" {
			if err := json.Unmarshal(one.Data, &problem); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("fail:%d", problem.Status), ""
		}
		return one.Event, one.ID
	}
}

func TestSeveralStreamsGoOverOneConnection(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.add(t, api.NewJob{ID: "other", Queue: "secretq", Name: "k"})
	id := s.add(t, api.NewJob{ID: "a/b", Queue: "q", Name: "k"}).JobID
	job := "/api/jobs/" + url.PathEscape(id) + "/stream"
	_, secret := s.keyOf(t, "some", "q")
	paths := []string{job, "/api/jobs/other/stream", "/api/stream?queue=q", "/api/runs/none/stream"}
	next := s.topics(t, secret, paths...)
	places := map[int]string{}
	want := func(next func(int) (string, string), topic int, events ...string) {
		t.Helper()
		for _, want := range events {
			got, id := next(topic)
			if got != want {
				t.Fatalf("topic %d: %s, want %s", topic, got, want)
			}
			if id != "" {
				places[topic] = id
			}
		}
	}
	want(next, 0, "snapshot")
	want(next, 1, "fail:404") // of a queue that the key is not for
	want(next, 2, "reset")
	want(next, 3, "fail:501") // there are no flows
	begun := places[0]
	s.work(t, "q", forebay.Ack)
	want(next, 0, "state", "state", "done")
	want(next, 2, "state", "state")
	// Each resumes from its own place; with the last one that is over, so is the connection.
	want(s.topics(t, secret, job+"?last_event_id="+begun, "/api/stream?queue=q"), 0, "state", "state", "done")
	want(s.topics(t, secret, job+"?last_event_id="+places[0], "/api/runs/none/stream"), 0, "over", "")

	again := s.topics(t, secret, paths[2], job)
	want(again, 0, "reset")
	s.streams.Close()
	want(again, 0, "")

	bearer := map[string]string{"Authorization": "Bearer " + secret}
	many := url.Values{"topic": slices.Repeat([]string{"/api/stream"}, 65)}.Encode()
	for _, bad := range []string{"topic=/api/jobs", "topic=nothing", "topic=http%3A%2F%2Fx%2Fapi%2Fstream", "topic=/api/stream%3Ftopic=/api/stream", many} {
		if r := s.do(t, "GET", "/api/stream?"+bad, "", bearer); r.status != 400 || r.problem.Code != forebay.CodeInvalid {
			t.Errorf("%.60s: %+v", bad, r)
		}
	}
}
