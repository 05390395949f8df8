package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// build is what the program knows of how it was made.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

// built reads what the Go tool wrote into the program.
func built() build {
	b := build{Version: "devel", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value[:min(len(s.Value), 12)]
		}
	}
	return b
}

func (versionCmd) Run(p *program) error {
	b := built()
	return p.print(b, func(w io.Writer) {
		fmt.Fprintf(w, "forebay %s (%s, %s)\n", b.Version, b.Go, b.System)
	})
}
