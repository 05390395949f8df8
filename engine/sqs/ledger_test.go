package sqs_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/ledger"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/engine/sqs"
)

// ledgered is a queue of jobs over SQS, with what runs beside it.
type ledgered struct {
	*ledger.Engine
	stop func()
	then func()
}

func (l ledgered) Unwrap() engine.Engine { return l.Engine }

func (l ledgered) Close() error {
	l.stop()
	err := l.Engine.Close()
	l.then()
	return err
}

// overSQS runs the suite's queue of an engine with a ledger over SQS.
func overSQS(rows engine.Engine, remote *sqs.Engine, then func()) (engine.Engine, error) {
	e, err := ledger.New(rows, remote, ledger.Config{Queues: []string{"q"}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	return ledgered{e, sync.OnceFunc(func() { cancel(); <-done }), then}, nil
}

// What SQS cannot do, and what engine/sqs says it cannot, holds with a ledger beside it.
// Without Only all holds too; the other topics are the ledger's engine's own business.
func TestConformanceOverLedger(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open: func(t testing.TB) engine.Engine {
			rows, err := sqlite.Open(sqlite.Config{Log: sqlite.LogConfig{Ages: map[string]time.Duration{"logged": time.Hour}}})
			if err != nil {
				t.Fatal(err)
			}
			ep := newEndpoint(t)
			e, err := overSQS(rows, ep.open(t, nil), ep.stop)
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		Only:   []string{"receive", "lease", "settle", "next", "priority", "limit", "cancel", "expiry"},
		Cannot: map[enginetest.Ability]string{enginetest.Leaving: "an open poll gets a grace, so that what it brings is given back"},
	})
}

const endpointEnv = "FOREBAY_TEST_LEDGER_ENDPOINT"

// Processes with a ledger over SQS are killed again and again, at any moment between row,
// notice, verdict and the end of the notice. SQS lives on, with all that they left there.
func TestKillOverLedger(t *testing.T) {
	if os.Getenv(endpointEnv) == "" { // the one that kills
		server := httptest.NewServer(newEndpoint(t).front)
		defer server.Close()
		t.Setenv(endpointEnv, server.URL)
	}
	enginetest.Kill(t, enginetest.KillConfig{Rounds: 6, Life: 500 * time.Millisecond, Open: func(dir string) (engine.Engine, error) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		rows, err := sqlite.Open(sqlite.Config{Path: filepath.Join(dir, "forebay.db")})
		if err != nil {
			return nil, err
		}
		remote, err := sqs.Open(context.Background(), sqs.Config{Endpoint: os.Getenv(endpointEnv), Create: true})
		if err != nil {
			return nil, err
		}
		return overSQS(rows, remote, func() {})
	}})
}
