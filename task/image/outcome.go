package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/storage"
	"github.com/forebayhq/forebay/worker"
)

// Result of a job.
type Result struct {
	Picture
	Fallback bool      `json:"fallback,omitempty"` // the compression failed: this is the original
	Variants []Picture `json:"variants,omitempty"`
}

// Picture is one object that was made.
type Picture struct {
	Name   string `json:"name,omitempty"` // of a variant: its format, or thumb-WxH
	URL    string `json:"url"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
}

// fetch brings the source, and the pictures of watermarks, into the folder of the
// job, and refuses what is too large by its header.
func (h *Handler) fetch(ctx context.Context, dir string, p *plan) error {
	if err := h.fetchOne(ctx, dir, &p.Source, codeNoImage); err != nil {
		return err
	}
	for i := range p.Marks {
		if m := &p.Marks[i]; m.Source != nil {
			if err := h.fetchOne(ctx, dir, m.Source, codeMark); err != nil {
				return err
			}
		}
	}
	p.settle()
	return nil
}

func (h *Handler) fetchOne(ctx context.Context, dir string, s *source, refusal string) error {
	r, object, err := h.cfg.Store.Get(ctx, s.Name)
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		return permanent(codeMissing, err)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if object.Size > h.cfg.MaxBytes {
		return permanent(codeTooLarge, bad("source", "it has %d bytes; at most %d are allowed", object.Size, h.cfg.MaxBytes))
	}
	f, err := os.OpenFile(filepath.Join(dir, s.File), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return forebay.Errorf(forebay.CodeUnavailable, "image", "temporary file: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(f, io.LimitReader(r, h.cfg.MaxBytes)); err != nil {
		return forebay.Errorf(forebay.CodeUnavailable, "image", "fetch %s: %w", s.Name, err)
	}
	return h.look(f, s, refusal)
}

// look reads the header of a fetched picture.
func (h *Handler) look(f *os.File, s *source, refusal string) error {
	head := make([]byte, 256<<10)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if s.Format = Sniff(head[:n]); s.Format == "" {
		return permanent(refusal, bad("source", "it is no picture: jpeg, png, webp, avif and gif are allowed"))
	}
	s.Profile, s.Plain = profiled(s.Format, head[:n]), plain(s.Format, head[:n])
	s.EXIF = bytes.Contains(head[:n], []byte("Exif\x00\x00"))
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if s.Size, err = header(s.Format, f); err != nil {
		return permanent(codeDamaged, bad("source", "its header cannot be read: %v", err))
	}
	if s.Width < 1 || s.Height < 1 {
		return permanent(codeDamaged, bad("source", "its size is %d × %d", s.Width, s.Height))
	}
	if pixels := int64(s.Width) * int64(s.Height); pixels > h.cfg.MaxPixels {
		return permanent(codePixels, bad("source", "it has %d × %d = %d pixels; at most %d are allowed", s.Width, s.Height, pixels, h.cfg.MaxPixels))
	}
	return nil
}

// Folder is where the objects of a job are in the storage.
func Folder(jobID string) string { return "images/" + storage.Segment(jobID) + "/" }

const maxStoring = 4 // objects of one job at a time: each waits for flushes

// keep stores what was made, under names that are the same for each attempt.
func (h *Handler) keep(ctx context.Context, j *worker.Job, dir string, p *plan, outputs []made, fallback bool) (*Result, error) {
	var result Result
	if fallback {
		result.Fallback = true
		s := p.Source
		result.Picture = Picture{URL: h.cfg.Store.URL(s.Name), Width: s.Width, Height: s.Height, Format: s.Format}
		if info, err := os.Stat(filepath.Join(dir, p.Source.File)); err == nil {
			result.Bytes = info.Size()
		}
	}
	pictures := make([]Picture, len(outputs))
	g, storing := errgroup.WithContext(ctx)
	g.SetLimit(maxStoring)
	for i, o := range outputs {
		g.Go(func() (err error) {
			pictures[i], err = h.keepOne(storing, Folder(j.Key()), dir, o)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, pic := range pictures {
		if pic.Name == "" {
			result.Picture = pic
		} else {
			result.Variants = append(result.Variants, pic)
		}
	}
	if result.URL == "" { // thumbnails only
		result.Picture = result.Variants[0]
	}
	return &result, nil
}

func (h *Handler) keepOne(ctx context.Context, folder, dir string, o made) (Picture, error) {
	ext, _ := extension(o.Format)
	name := o.Name
	if name == "" || name == o.Format {
		name = "image"
	}
	f, err := os.Open(filepath.Join(dir, o.File))
	if err != nil {
		return Picture{}, forebay.Errorf(forebay.CodeUnavailable, "image", "output: %w", err)
	}
	defer f.Close()
	object, err := h.cfg.Store.Put(ctx, folder+name+ext, ContentType(o.Format), f, 0)
	if err != nil {
		return Picture{}, err
	}
	return Picture{Name: o.Name, URL: h.cfg.Store.URL(object.Name), Width: o.Width, Height: o.Height, Format: o.Format, Bytes: object.Size}, nil
}

// warm asks a CDN for each result, so that it has them before people do. Failures
// are told, and change nothing.
func (h *Handler) warm(ctx context.Context, t *teller, r *Result) {
	if len(h.cfg.Warm) == 0 {
		return
	}
	t.tell("warm")
	for _, pic := range append([]Picture{r.Picture}, r.Variants...) {
		for _, prefix := range h.cfg.Warm {
			name, _ := h.cfg.Store.NameOf(pic.URL)
			if err := h.ask(ctx, strings.TrimSuffix(prefix, "/")+"/"+name); err != nil {
				t.job.Logf("warming failed: %v", err)
			}
		}
	}
}

func (h *Handler) ask(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := h.cfg.Client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(res.Body, 64<<20)); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return nil
}
