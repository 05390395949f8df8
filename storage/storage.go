// Package storage keeps objects: what was uploaded, and what was made of it. They
// are files in a folder, or objects in an S3 bucket; which one is a setting.
//
// It promises that an object is whole or not there: a Put that fails or grows too
// large leaves nothing, and what was there before. Where objects are files, Put
// returns after they would survive a loss of power. Names are paths of plain
// characters, so that one is never more than a name. Objects are served so that a
// browser shows pictures and runs nothing.
//
// It refuses to know what is in an object, and to decide who may see it: whoever
// knows a name may read it, and names that are not to be guessed are made so.
package storage

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/forebayhq/forebay"
)

// Config of a store.
type Config struct {
	// Address is a folder, or `s3://bucket?region=…` (with `prefix`, `endpoint` and
	// `use_path_style` where they are needed; credentials come from the chain that
	// all AWS tools use). There is no default.
	Address string
	BaseURL string // in front of names in URLs; default "/files/"
	MaxPut  int64  // bytes of one object; default 1 GiB
}

// Store is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	folder string // empty: not files
	cfg    Config
}

// Object is what is known of one without reading it.
type Object struct {
	Name        string
	Size        int64
	ContentType string // not known in lists
	Modified    time.Time
}

const (
	defaultBaseURL = "/files/"
	defaultMaxPut  = 1 << 30
)

// Open opens a store, and makes its folder. It does not look whether a bucket
// answers: Check does.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = defaultBaseURL
	}
	if cfg.MaxPut == 0 {
		cfg.MaxPut = defaultMaxPut
	}
	if !strings.HasSuffix(cfg.BaseURL, "/") {
		cfg.BaseURL += "/"
	}
	s := &Store{cfg: cfg}
	var err error
	switch scheme, _, found := strings.Cut(cfg.Address, "://"); {
	case cfg.Address == "":
		return nil, invalid("address", "there is no address; a folder or s3://bucket is allowed")
	case found && scheme == "s3":
		s.bucket, err = openS3(ctx, cfg.Address)
	case found:
		return nil, invalid("address", "the address begins with %q; a folder or s3://bucket is allowed", scheme+"://")
	default:
		if s.folder, err = filepath.Abs(cfg.Address); err == nil {
			s.bucket, err = openFolder(s.folder)
		}
	}
	if err != nil {
		return nil, failed("open", cfg.Address, err)
	}
	return s, nil
}

func openFolder(dir string) (*blob.Bucket, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// Without NoTempDir a file is begun in the system's temporary folder, which may
	// be another disk, where it cannot be renamed into place.
	return fileblob.OpenBucket(dir, &fileblob.Options{NoTempDir: true, DirFileMode: 0o700})
}

func openS3(ctx context.Context, address string) (*blob.Bucket, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	q := u.Query()
	prefix := q.Get("prefix")
	q.Del("prefix")
	u.RawQuery = q.Encode()
	b, err := (&s3blob.URLOpener{}).OpenBucketURL(ctx, u)
	if err != nil {
		return nil, err
	}
	if prefix != "" {
		b = blob.PrefixedBucket(b, strings.TrimSuffix(prefix, "/")+"/")
	}
	return b, nil
}

// Close ends what is under way and frees what the store holds.
func (s *Store) Close() error { return s.bucket.Close() }

// Check tells whether the place of the objects answers, for readiness.
func (s *Store) Check(ctx context.Context) error {
	ok, err := s.bucket.IsAccessible(ctx)
	if err != nil {
		return failed("check", "", err)
	}
	if !ok {
		return forebay.Errorf(forebay.CodeUnavailable, "storage: check", "there is no such bucket or folder: %s", s.cfg.Address)
	}
	return nil
}

// URL is where the server, or what stands before it, serves an object.
func (s *Store) URL(name string) string { return s.cfg.BaseURL + name }

// NameOf gives the name in a URL that URL made.
func (s *Store) NameOf(url string) (string, bool) {
	name, ok := strings.CutPrefix(url, s.cfg.BaseURL)
	return name, ok && CheckName(name) == nil
}

// Get opens an object for reading. Its reader can seek, so that ranges are cheap.
// The caller closes it.
func (s *Store) Get(ctx context.Context, name string) (io.ReadSeekCloser, Object, error) {
	if err := CheckName(name); err != nil {
		return nil, Object{}, err
	}
	r, err := s.bucket.NewReader(ctx, name, nil)
	if err != nil {
		return nil, Object{}, failed("get", name, err)
	}
	return r, Object{Name: name, Size: r.Size(), ContentType: r.ContentType(), Modified: r.ModTime()}, nil
}

// Delete removes an object. One that is not there is no error.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := s.bucket.Delete(ctx, name); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return failed("delete", name, err)
	}
	return nil
}

// List gives the objects whose name begins with prefix, in the order of names,
// page by page. It ends after an error.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for it := s.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
			o, err := it.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Object{}, failed("list", prefix, err))
				return
			}
			if !yield(Object{Name: o.Key, Size: o.Size, Modified: o.ModTime}, nil) {
				return
			}
		}
	}
}

// Clean deletes objects below a prefix that were last written before a time, at
// most so many, and tells how many it deleted.
func (s *Store) Clean(ctx context.Context, prefix string, before time.Time, most int) (int, error) {
	var old []string
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return 0, err
		}
		if len(old) == most {
			break
		}
		if o.Modified.Before(before) {
			old = append(old, o.Name)
		}
	}
	for i, name := range old {
		if err := s.Delete(ctx, name); err != nil {
			return i, err
		}
	}
	return len(old), nil
}

func invalid(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "storage", format, args...)
	e.Field = field
	return e
}

// failed gives an error of the driver our code.
func failed(op, name string, err error) error {
	code := forebay.CodeUnavailable
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return forebay.Errorf(forebay.CodeNotFound, "storage: "+op, "there is no %s", name)
	case gcerrors.InvalidArgument:
		code = forebay.CodeInvalid
	case gcerrors.PermissionDenied:
		code = forebay.CodeUnauthorized
	case gcerrors.ResourceExhausted:
		code = forebay.CodeLimited
	case gcerrors.FailedPrecondition:
		code = forebay.CodeClosed
	}
	if full(err) {
		code = forebay.CodeFull
	}
	return forebay.Errorf(code, "storage: "+op, "%s: %w", name, err)
}
