package redis

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/forebayhq/forebay"
)

const oldest = "6.2.0" // as BullMQ advises

// Finding is something about the server that an operator should know.
type Finding struct {
	Code string // eviction, persistence, fsync, version
	Text string
	Hint string
}

// Audit looks how far the server keeps what it says it has stored.
func (e *Engine) Audit(ctx context.Context) ([]Finding, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	info, err := e.info(ctx, "server", "memory", "persistence")
	if err != nil {
		return nil, err
	}
	var found []Finding
	if p := info["maxmemory_policy"]; p != "" && p != "noeviction" {
		found = append(found, Finding{"eviction", "the server drops keys when its memory is full (maxmemory-policy " + p + "): jobs and locks would be lost",
			"set maxmemory-policy noeviction"})
	}
	switch {
	case info["aof_enabled"] != "1" && info["rdb_last_save_time"] != "" && e.setting(ctx, "save") == "":
		found = append(found, Finding{"persistence", "the server writes nothing to the disk: a restart loses everything", "set appendonly yes and appendfsync always"})
	case info["aof_enabled"] != "1":
		found = append(found, Finding{"persistence", "the server writes snapshots only: a crash loses what came since the last", "set appendonly yes and appendfsync always"})
	case e.setting(ctx, "appendfsync") != "always":
		found = append(found, Finding{"fsync", "the server flushes its log about once a second: power loss may lose that much of what was acknowledged",
			"set appendfsync always where that matters"})
	}
	if v := info["redis_version"]; older(v, "7.0.0") {
		found = append(found, Finding{"version", "the server is Redis " + v + ": delayed jobs may be a little later than with 7.0 or later", "upgrade the server"})
	}
	return found, nil
}

// Server is what answers, as an operator wants to read it.
type Server struct {
	Version string
	Cluster bool
	Policy  string // maxmemory-policy
	Log     string // appendfsync of the append-only file; empty: there is none
	Used    int64  // bytes of memory
	Most    int64  // bytes that it may use; 0: no bound
}

// Server asks who answers.
func (e *Engine) Server(ctx context.Context) (Server, error) {
	if err := e.enter(); err != nil {
		return Server{}, err
	}
	defer e.leave()
	info, err := e.info(ctx, "server", "memory", "persistence")
	if err != nil {
		return Server{}, err
	}
	s := Server{
		Version: info["redis_version"], Cluster: info["redis_mode"] == "cluster", Policy: info["maxmemory_policy"],
		Used: number(info["used_memory"]), Most: number(info["maxmemory"]),
	}
	if info["aof_enabled"] == "1" {
		s.Log = cmp.Or(e.setting(ctx, "appendfsync"), "not told")
	}
	return s, nil
}

// setting reads one of the server's; empty also where it may not be read.
func (e *Engine) setting(ctx context.Context, name string) string {
	v, err := e.client.ConfigGet(ctx, name).Result()
	if err != nil {
		return ""
	}
	return v[name]
}

func (e *Engine) info(ctx context.Context, sections ...string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	all := make(map[string]string)
	for _, section := range sections {
		s, err := e.client.Info(ctx, section).Result()
		if err != nil {
			return nil, e.fault(err)
		}
		for line := range strings.SplitSeq(s, "\r\n") {
			if name, value, ok := strings.Cut(line, ":"); ok {
				all[name] = value
			}
		}
	}
	return all, nil
}

// older compares versions like 7.0.15.
func older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range y {
		m, n := 0, 0
		if i < len(x) {
			m, _ = strconv.Atoi(x[i]) // what is no number counts as 0: older
		}
		if n, _ = strconv.Atoi(y[i]); m != n {
			return m < n
		}
	}
	return false
}

// Check tells whether messages can be stored now: the server answers, is writable and has memory.
func (e *Engine) Check(ctx context.Context) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	if err := e.client.Set(ctx, e.global("check"), e.instance, e.cfg.Timeout).Err(); err != nil {
		if undone(err) {
			return fail(forebay.CodeUnavailable, "the server takes nothing now: %v", err)
		}
		return e.fault(err)
	}
	return nil
}
