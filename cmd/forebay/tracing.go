package main

import (
	"context"
	"net/http"
	"os"
	"slices"

	"github.com/forebayhq/forebay/monitor/trace"
)

// openOperations reads the certificates, and makes the tracer where the standard variables
// of OpenTelemetry name a place to send spans to.
func (s *server) openOperations() (err error) {
	if s.certs, err = openCertificates(s.settings, s.log.With("part", "tls")); err != nil {
		return err
	}
	if s.tracing, err = trace.Open(context.Background(), built().Version, os.LookupEnv); err != nil {
		return usage(err)
	}
	s.closing(s.tracing.Close)
	return nil
}

// traced makes spans of the requests that bring events and jobs, as the front does for
// those that it serves.
func (s *server) traced(all http.Handler) http.Handler {
	if s.tracing == nil {
		return all
	}
	traced := s.tracing.HTTP(all)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && (slices.Contains(oftenPosted, r.URL.Path) || r.URL.Path == "/api/jobs/bulk") {
			traced.ServeHTTP(w, r)
			return
		}
		all.ServeHTTP(w, r)
	})
}
