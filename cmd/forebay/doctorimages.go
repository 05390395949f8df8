package main

import (
	"context"
	"os"

	"github.com/forebayhq/forebay/storage"
	"github.com/forebayhq/forebay/task/image"
)

// images tells what would work on pictures here, without touching the data folder.
func (d *doctor) images(ctx context.Context) finding {
	const name = "images"
	dir, err := os.MkdirTemp("", "forebay-doctor-")
	if err != nil {
		return fail(name, "", err)
	}
	defer os.RemoveAll(dir)
	store, err := storage.Open(ctx, storage.Config{Address: dir})
	if err != nil {
		return fail(name, "", err)
	}
	defer store.Close()
	child, err := image.Executable(imageChild)
	if err != nil {
		return fail(name, "", err)
	}
	cfg := image.Config{Store: store, Child: child}
	if backend := d.settings.Images.Backend; backend != "auto" {
		cfg.Backend = backend
	}
	h, err := image.New(ctx, cfg)
	if err != nil {
		return fail(name, "apt-get install libvips-tools, or images.backend: auto", err)
	}
	defer h.Close()
	return ok(name, "%s", h.Doctor())
}
