package main

import (
	"testing"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// Targets of pushes are told where others reach the server, not where it listens.
func TestProgressURL(t *testing.T) {
	for public, want := range map[string]string{
		"":                               "http://127.0.0.1:8080/api/leases/progress",
		"https://forebay.example.com":    "https://forebay.example.com/api/leases/progress",
		"https://example.com/forebay/":   "https://example.com/forebay/api/leases/progress",
		"http://forebay.internal:8080//": "http://forebay.internal:8080/api/leases/progress",
	} {
		s := &server{settings: &config.Settings{Server: config.Server{PublicURL: public}}, file: serverFile{URL: "http://127.0.0.1:8080"}}
		if got := s.progressURL(); got != want {
			t.Errorf("%q: %s, want %s", public, got, want)
		}
	}
}
