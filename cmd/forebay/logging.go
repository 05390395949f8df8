package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// newLogger logs to w: lines for people on a terminal, JSON for machines.
func newLogger(w io.Writer, c config.Log, terminal bool) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(strings.ToUpper(c.Level))) // config allows only its words
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if c.Format == "text" || c.Format == "auto" && terminal {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// readable writes durations as people do; as JSON they would be nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// httpLog takes what net/http has to say. Most of it is about clients that went
// away; a panic is a defect of ours, which net/http survives and tells only here.
type httpLog struct{ log *slog.Logger }

func (h httpLog) Write(line []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.HasPrefix(line, []byte("http: panic")) {
		level = slog.LevelError
	}
	h.log.Log(context.Background(), level, string(bytes.TrimSpace(line)))
	return len(line), nil
}
