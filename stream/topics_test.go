package stream_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/stream"
)

// TestOneThatBreaksOffEndsAll has two jobs over one connection: when the stream of one breaks
// off, as no proxy or server should let it, the client must come again for both.
func TestOneThatBreaksOffEndsAll(t *testing.T) {
	t.Parallel()
	broken := make(chan struct{})
	s := start(t, open(t, ""), func(s *stand, _ *stream.Config) {
		one := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/broken" {
				io.WriteString(w, "event: snapshot\ndata: {\"v\":1}\n\n")
				<-broken
				return
			}
			s.streams.ServeJob(w, r, strings.TrimPrefix(r.URL.Path, "/"), nil)
		})
		s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			topics := []*http.Request{r.Clone(r.Context()), r.Clone(r.Context())}
			topics[0].URL.Path, topics[1].URL.Path = "/a", "/broken"
			s.streams.ServeTopics(w, r, topics, one)
		})
	})
	s.add("a")
	all := s.get("all", "")
	all.want("topic", "topic") // each its snapshot
	close(broken)
	all.end()
}
