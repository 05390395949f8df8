package ingest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/forebayhq/forebay/ingest"
)

// newServer is an http.Server as the program sets it up.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: ingest.ReadHeaderTimeout, ReadTimeout: ingest.ReadTimeout,
		WriteTimeout: ingest.WriteTimeout, IdleTimeout: ingest.IdleTimeout, MaxHeaderBytes: ingest.MaxHeaderBytes,
	}
}

// serve puts the edge behind a real server on loopback.
func (r *rig) serve() *httptest.Server {
	s := httptest.NewUnstartedServer(nil)
	s.Config = newServer(r.mux)
	s.Start()
	r.t.Cleanup(s.Close)
	return s
}

// The CloudEvents SDK is the client, in each of the modes that it has.
func TestTheCloudEventsSDKIsUnderstood(t *testing.T) {
	r := newRig(t, nil)
	s := r.serve()
	make := func(id string) cloudevents.Event {
		e := cloudevents.NewEvent()
		e.SetID(id)
		e.SetSource("https://example.com/sdk")
		e.SetType("com.example.sdk")
		e.SetSubject("Euro €")
		e.SetTime(noon)
		e.SetExtension("userid", "u1")
		if err := e.SetData(cloudevents.ApplicationJSON, map[string]any{"a": []int{1, 2}, "id": id}); err != nil {
			t.Fatal(err)
		}
		return e
	}
	client, err := cloudevents.NewClientHTTP(cloudevents.WithTarget(s.URL + "/ingest/cloudevents"))
	if err != nil {
		t.Fatal(err)
	}
	for mode, ctx := range map[string]context.Context{
		"binary":     cloudevents.WithEncodingBinary(t.Context()),
		"structured": cloudevents.WithEncodingStructured(t.Context()),
	} {
		var res *cehttp.Result
		if err := client.Send(ctx, make(mode)); !cloudevents.IsACK(err) || !cloudevents.ResultAs(err, &res) || res.StatusCode != 202 {
			t.Errorf("%s: %v", mode, err)
		}
	}
	req, err := cehttp.NewHTTPRequestFromEvents(t.Context(), s.URL+"/ingest/event", []cloudevents.Event{make("b1"), make("b2")})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != 202 {
		t.Fatal(res, err)
	}
	res.Body.Close()
	if len(r.queue.events) != 4 {
		t.Fatalf("%d events queued: %+v", len(r.queue.events), r.badRows())
	}
	for _, e := range r.queue.events {
		// What was queued is what the SDK reads as the event that it sent.
		var back cloudevents.Event
		if err := back.UnmarshalJSON(e.Payload); err != nil {
			t.Fatalf("%s: %v", e.Payload, err)
		}
		if back.Subject() != "Euro €" || back.Type() != e.Type || !back.Time().Equal(noon) || e.UserID != "u1" || !e.OccurredAt.Equal(noon) ||
			e.ID != "https://example.com/sdk#"+back.ID() || string(back.Data()) != fmt.Sprintf(`{"a":[1,2],"id":%q}`, back.ID()) {
			t.Errorf("%s came back as %v", e.Payload, back)
		}
	}
}

func TestABodyThatBreaksOffLeavesNothing(t *testing.T) {
	r := newRig(t, nil)
	s := r.serve()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n%s", anEvent)
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != 400 {
		t.Fatal(res, err)
	}
	if len(r.queue.msgs) != 0 || len(r.badRows()) != 0 {
		t.Error("something was left behind")
	}
}

// What says that it is too large is refused before it is sent.
func TestALargeBodyIsRefusedByItsLength(t *testing.T) {
	s := newRig(t, nil).serve()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 500001\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != 413 {
		t.Fatal(res, err)
	}
}

// A body without a length, more than one connection's buffers, and an answer that
// is larger still.
func TestChunkedBodiesAndLongAnswers(t *testing.T) {
	r := newRig(t, nil)
	s := r.serve()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			body := io.MultiReader(strings.NewReader("["), strings.NewReader(strings.TrimSuffix(strings.Repeat(`{"eventType":7},`, 2500), ",")), strings.NewReader("]"))
			res, err := http.Post(s.URL+"/ingest/batch", "application/json", body)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != 202 || strings.Count(string(b), `"rejected"`) != 2501 {
				t.Errorf("%d %v, %d bytes", res.StatusCode, err, len(b))
			}
		})
	}
	all.Wait()
	// The connection lives on, without the deadline of the long answer.
	if res, err := http.Post(s.URL+"/ingest/event", "", strings.NewReader(anEvent)); err != nil || res.StatusCode != 202 {
		t.Error(res, err)
	} else {
		res.Body.Close()
	}
	res, err := http.Post(s.URL+"/ingest/batch", "", io.MultiReader(strings.NewReader(events(6, 100_000))))
	if err != nil || res.StatusCode != 413 {
		t.Errorf("chunked and too large: %v %v", res, err)
	} else {
		res.Body.Close()
	}
}

// Requests at once share pools; none may see another's bytes.
func TestRequestsAtOnceDoNotMix(t *testing.T) {
	r := newRig(t, nil)
	s := r.serve()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 50 {
				id := fmt.Sprintf("w%d-%d", worker, i)
				body := fmt.Sprintf(`[{"eventType":"t-%[1]s","payload":{"id":%[1]q,"pad":%[2]q},"eventId":%[1]q,"userId":%[1]q},{"eventType":%[1]q}]`, id, strings.Repeat("x", worker*i*10))
				if i%3 == 0 {
					body = gzipped(t, body)
				}
				res, err := http.Post(s.URL+"/ingest/batch", "", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
	all.Wait()
	if len(r.queue.events) != 400 || len(r.badRows()) != 400 {
		t.Fatalf("%d queued, %d bad rows", len(r.queue.events), len(r.badRows()))
	}
	for i, e := range r.queue.events {
		if m := r.queue.msgs[i]; e.ID != m.ID || e.UserID != e.ID || e.Type != "t-"+e.ID || m.Group != e.ID || !strings.Contains(string(e.Payload), `"id":"`+e.ID+`"`) {
			t.Fatalf("mixed up: %+v %+v", m, e)
		}
	}
}
