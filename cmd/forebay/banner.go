package main

import (
	"fmt"
	"net/url"
	"path/filepath"
)

// banner says where the server is and what it works with, for people.
func (s *server) banner(p *program) {
	line := func(name, text string) { fmt.Fprintf(p.err, "  %-8s %s\n", name, text) }
	fmt.Fprintf(p.err, "%s %s\n", p.paint(bold, "forebay"), built().Version)
	line("events", s.file.URL+"/ingest/event")
	line("api", s.file.URL+"/openapi.json")
	dir, err := filepath.Abs(s.settings.Data.Dir)
	if err != nil {
		dir = s.settings.Data.Dir
	}
	if url := s.sqsURL(); url != "" {
		if s.sqsUnsigned() {
			url += ", unsigned requests of this machine are let in (no access keys)"
		}
		line("sqs", url)
	}
	line("queue", fmt.Sprintf("SQLite in %s, durability %s", dir, s.settings.Data.Durability))
	if s.sink != nil {
		line("sink", s.sinkName())
	}
	if !s.ring.Required() {
		line("keys", "none: everyone who reaches the port may send and look")
	}
	fmt.Fprintln(p.err)
}

// sinkName names the database without its password.
func (s *server) sinkName() string {
	if s.settings.Sink.URL == "" {
		return "SQLite, table events of " + eventsFile
	}
	u, err := url.Parse(s.settings.Sink.URL)
	if err != nil {
		return "PostgreSQL"
	}
	return "PostgreSQL at " + u.Host + u.Path
}
