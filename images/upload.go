package images

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task/image"
)

// Uploaded is the answer to an upload.
type Uploaded struct {
	JobID            string `json:"jobId"`
	Status           string `json:"status"` // processing
	OriginalURL      string `json:"originalUrl"`
	ProgressURL      string `json:"progressUrl"`
	StreamURL        string `json:"streamUrl"`
	EstimatedSeconds int    `json:"estimatedSeconds"`
}

const (
	maxFields     = 20
	maxFieldBytes = 4096
	maxKeyBytes   = 255
	unknownTime   = 5 * time.Second // what is said of the first pictures ever
)

// counted reads an upload: it keeps a hash of it, for the sake of repetitions.
type counted struct {
	r   io.Reader
	sum hash.Hash
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	return n, err
}

// upload takes a picture as the field "file" of a form, or as the whole body. The
// original is stored first, then its job: what is stored without a job, since the
// process died between the two, is cleaned by age.
func (s *Images) upload(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(s.cfg.Patience)) // some wrappers have none; the server's own holds then
	r.Body = http.MaxBytesReader(w, r.Body, s.cfg.MaxBytes+maxFields*maxFieldBytes+1<<16)
	fields := r.URL.Query()
	stored, err := s.receive(r, fields)
	if err == nil {
		var up Uploaded
		if up, err = s.submit(r, stored, fields); err == nil {
			answer(w, http.StatusOK, envelope{Data: up})
			return
		}
	}
	if stored.name != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
		defer cancel()
		_ = s.cfg.Store.Delete(ctx, stored.name) // cleaned by age where this fails
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		err = forebay.Errorf(forebay.CodeTooLarge, "", "the upload is larger than %d bytes", s.cfg.MaxBytes)
	}
	s.fail(w, err)
}

// original is an upload that was stored.
type original struct {
	name string
	sum  [sha256.Size]byte
}

// receive stores the picture, and adds the form's other fields to fields.
func (s *Images) receive(r *http.Request, fields url.Values) (original, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return s.store(r.Context(), r.Body)
	}
	if params["boundary"] == "" {
		return original{}, invalid("Content-Type", "the form has no boundary")
	}
	var stored original
	form := multipart.NewReader(r.Body, params["boundary"])
	for n := 0; ; n++ {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return stored, broken(err)
		}
		if n == maxFields {
			return stored, invalid("file", "the form has more than %d fields", maxFields)
		}
		if part.FormName() == "file" {
			if stored.name != "" {
				return stored, invalid("file", "the form has two files; one is allowed")
			}
			if stored, err = s.store(r.Context(), part); err != nil {
				return stored, err
			}
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, maxFieldBytes+1))
		if err != nil {
			return stored, broken(err)
		}
		if len(text) > maxFieldBytes {
			return stored, invalid(part.FormName(), "the field has more than %d bytes", maxFieldBytes)
		}
		fields.Set(part.FormName(), string(text))
	}
	if stored.name == "" {
		return stored, invalid("file", `the form has no field "file"`)
	}
	return stored, nil
}

// broken is what a client's connection, or its form, did.
func broken(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	return invalid("file", "the upload cannot be read: %v", err)
}

// store streams one picture into the storage, under a name that nobody can guess.
func (s *Images) store(ctx context.Context, r io.Reader) (original, error) {
	buffered := bufio.NewReader(r)
	head, err := buffered.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) {
		return original{}, broken(err)
	}
	if len(head) == 0 {
		return original{}, invalid("file", "the upload is empty")
	}
	format := image.Sniff(head)
	if format == "" {
		return original{}, forebay.Errorf(codeMedia, "", "the upload is no picture: jpeg, png, webp, avif and gif are allowed")
	}
	in := &counted{buffered, sha256.New()}
	name := "originals/" + uuid.NewString() + "." + format
	if _, err := s.cfg.Store.Put(ctx, name, image.ContentType(format), in, s.cfg.MaxBytes); err != nil {
		return original{}, err
	}
	o := original{name: name}
	in.sum.Sum(o.sum[:0])
	return o, nil
}

// submit puts the job on the queue. An Idempotency-Key makes the id of the job: the
// repetition of an upload is a duplicate, and is answered as the first one was.
func (s *Images) submit(r *http.Request, o original, fields url.Values) (Uploaded, error) {
	steps, err := stepsOf(fields)
	if err != nil {
		return Uploaded{}, err
	}
	data := image.Data{Source: o.name, Steps: steps}
	if err := data.Check(); err != nil {
		return Uploaded{}, err
	}
	payload, err := json.Marshal(data)
	if err != nil {
		return Uploaded{}, err
	}
	wanted, err := json.Marshal(steps)
	if err != nil {
		return Uploaded{}, err
	}
	print := sha256.Sum256(append(o.sum[:], wanted...))
	m := forebay.Message{
		ID: uuid.NewString(), Queue: s.cfg.Queue, Kind: s.cfg.Kind, Payload: payload, Priority: forebay.At(1),
		Fingerprint: binary.LittleEndian.Uint64(print[:]) | 1, // zero means none
		Limits:      forebay.Limits{Attempts: s.cfg.Attempts}, Job: &forebay.JobOptions{},
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		if len(key) > maxKeyBytes {
			return Uploaded{}, invalid("Idempotency-Key", "it has %d bytes; at most %d are allowed", len(key), maxKeyBytes)
		}
		sum := sha256.Sum256([]byte(r.Header.Get("Authorization") + "\x00" + key))
		m.ID = "img-" + hex.EncodeToString(sum[:16])
	}
	sent, err := s.cfg.Jobs.Send(r.Context(), []forebay.Message{m})
	if err != nil {
		return Uploaded{}, err
	}
	switch res := sent[0]; {
	case res.Err != nil:
		return Uploaded{}, res.Err
	case res.Conflict:
		return Uploaded{}, forebay.Errorf(codeReused, "", "this Idempotency-Key was used for another upload")
	case res.Duplicate:
		return s.repeated(r.Context(), o, res.ID)
	}
	return s.uploaded(m.ID, o.name), nil
}

// repeated answers as the first upload was, and forgets the second original.
func (s *Images) repeated(ctx context.Context, o original, id string) (Uploaded, error) {
	job, err := s.cfg.Jobs.Job(ctx, id)
	if err != nil {
		return Uploaded{}, err
	}
	var first image.Data
	if err := json.Unmarshal(job.Payload, &first); err != nil {
		return Uploaded{}, err
	}
	if err := s.cfg.Store.Delete(ctx, o.name); err != nil {
		return Uploaded{}, err
	}
	return s.uploaded(id, first.Source), nil
}

func (s *Images) uploaded(id, name string) Uploaded {
	likely := unknownTime
	if s.cfg.Estimate != nil {
		if d, ok := s.cfg.Estimate(s.cfg.Queue, s.cfg.Kind); ok {
			likely = d
		}
	}
	base := "/api/images/" + url.PathEscape(id)
	return Uploaded{JobID: id, Status: "processing", OriginalURL: s.cfg.Store.URL(name), ProgressURL: base + "/progress", StreamURL: base + "/stream",
		EstimatedSeconds: max(1, int(math.Ceil(likely.Seconds())))}
}

func invalid(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
	e.Field = field
	return e
}
