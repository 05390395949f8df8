//go:build linux

package pgtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the one server of a test binary, started by the first test that
// asks for a database and ended by Main.
var shared struct {
	sync.Mutex
	inMain bool
	server *Server
	err    error
}

// Main runs the tests of a binary and ends the shared server. Call it from
// TestMain.
func Main(m *testing.M) {
	shared.Lock()
	shared.inMain = true
	shared.Unlock()
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	removeStale()
	os.Exit(code)
}

// Database gives the URL of a fresh, empty database on the shared server.
func Database(t testing.TB) string {
	t.Helper()
	return Shared(t).Database(t)
}

// Shared is the server of this test binary. Tests that stop a server take one of
// their own: Start.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.inMain {
		t.Fatal("pgtest: TestMain must call pgtest.Main, which ends the server")
	}
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = New(context.Background(), Config{})
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Start starts a server for one test; it ends with the test.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Database gives the URL of a fresh, empty database on this server.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	url, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return url
}
