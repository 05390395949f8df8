package main

import (
	"bytes"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// A panic of a route must be seen at the default level; a client that breaks its
// connection must not.
func TestPanicsOfRoutesAreLogged(t *testing.T) {
	var text bytes.Buffer
	logger := newLogger(&text, config.Log{Level: "info", Format: "json"}, false)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken route") }))
	s.Config.ErrorLog = log.New(httpLog{logger}, "", 0)
	s.Start()
	if _, err := http.Get(s.URL); err == nil {
		t.Error("the route answered; it should have panicked")
	}
	s.Close()
	if got := text.String(); !strings.Contains(got, `"level":"ERROR"`) || !strings.Contains(got, "broken route") {
		t.Errorf("the log says %q", got)
	}
	text.Reset()
	log.New(httpLog{logger}, "", 0).Print("http: TLS handshake error from a client")
	if text.Len() > 0 {
		t.Errorf("noise of a client is logged: %s", text.String())
	}
}
