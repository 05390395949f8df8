package main

import (
	"io"
	"log/slog"
	"strings"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// newLogger logs to w: lines for people on a terminal, JSON for machines.
func newLogger(w io.Writer, c config.Log, terminal bool) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(strings.ToUpper(c.Level))) // config allows only its words
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" || c.Format == "auto" && terminal {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
