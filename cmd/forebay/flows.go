package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/worker"
)

// Workers of the queues of flows. What they do is short, and decides about many runs.
const (
	runsAtOnce     = 200
	advancesAtOnce = 4
	loadTimeout    = time.Minute
	advanceQueue   = runner.DefaultQueue + "-advance" // where runs tell themselves what happened
)

// openFlows opens what runs flows.
func (s *server) openFlows() (err error) {
	s.flows, err = runner.New(s.broker, runner.Config{
		Alone: !s.settings.JobsAway(), // else other servers may work on the same jobs
		Emit:  eventOfFlow,

		FourEyes: s.settings.Flows.FourEyes,

		Logger: s.log.With("part", "flows"),
	})
	return err
}

// eventOfFlow writes an event that a flow emits as the sink reads it: data that is no
// object is its value.
func eventOfFlow(id, kind string, data []byte, now time.Time) []byte {
	if !bytes.HasPrefix(data, []byte("{")) {
		data = slices.Concat([]byte(`{"value":`), data, []byte("}"))
	}
	e := event.Event{ID: id, Type: kind, Payload: data, ReceivedAt: now, Source: "flow"}
	b, err := e.Append(nil)
	if err != nil { // an id or type that is not UTF-8, which the flow's file cannot have
		return data
	}
	return b
}

// openFlowWorkers makes the workers that runs need besides those of their steps.
func (s *server) openFlowWorkers() error {
	for _, cfg := range []worker.Config{
		{Queue: s.flows.Queue(), Jobs: s.flows.Handler(), Concurrency: runsAtOnce},
		{Queue: s.flows.AdvanceQueue(), Batch: s.flows.Advances(), Concurrency: advancesAtOnce},
	} {
		cfg.Lease, cfg.DrainTimeout = s.settings.Queue(cfg.Queue).Lease, s.settings.Server.Drain
		cfg.Logger, cfg.Observe = s.log.With("part", "flows"), s.monitor.Worker()
		w, err := worker.New(s.broker, cfg)
		if err != nil {
			return err
		}
		s.workers = append(s.workers, w)
		s.watch(cfg.Queue, w)
	}
	return nil
}

// knows tells what files of flows are compared with: the handlers of this server by
// queue. Other queues may have workers that pull.
func knows(queues muxes) map[string][]string {
	k := make(map[string][]string, len(queues))
	for name, mux := range queues {
		k[name] = mux.Kinds()
	}
	return k
}

// loadFlows stores the files of a folder, each as the next version of its flow unless
// the latest says the same. All that is wrong with them is told at once.
func (s *server) loadFlows() error {
	dir := s.settings.Flows.Dir
	if dir == "" || !s.settings.Server.Has(config.RoleAPI) && !s.settings.Server.Has(config.RoleWorker) {
		return nil
	}
	files, err := flowFiles(dir)
	if err != nil {
		return usage(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	of := map[string]string{} // by flow, its file
	var wrong []error
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return usage(err)
		}
		if d, _ := flow.Parse(src); d != nil && of[d.Name] != "" {
			wrong = append(wrong, fmt.Errorf("%s: the flow %s is in %s too; keep one of them", file, d.Name, of[d.Name]))
			continue
		} else if d != nil {
			of[d.Name] = file
		}
		version, problems, err := s.flows.PutBy(ctx, src, s.known, runner.Release{Author: "flows.dir"})
		if err != nil {
			return cannotStart(fmt.Errorf("%s: %w", file, err))
		}
		for _, p := range problems {
			if !p.Warning {
				wrong = append(wrong, fmt.Errorf("%s:%s", file, p))
				continue
			}
			s.log.Warn("flow", "file", file, "line", p.Line, "problem", p.Text, "code", p.Code)
		}
		if len(problems.Errors()) == 0 {
			s.log.Info("flow", "file", file, "version", version)
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return usage(err)
	}
	return nil
}

// flowFiles are the files of a folder that can be flows, in order.
func flowFiles(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("flows.dir: %w", err)
	}
	for _, e := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) && !e.IsDir() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}
