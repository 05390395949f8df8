// Package console is the pages on which people see and steer a server: static files
// that were built from src and are part of the program.
//
// It promises that no page asks another host for anything, that a browser may keep a
// file for ever since its address changes with its content, that the pages work
// under any prefix that a proxy or a mux takes off, and that they come with a strict
// Content-Security-Policy.
//
// It refuses to know anything of the server: all that the pages show and change goes
// through the API, as for any other client.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed dist
var dist embed.FS

// policy lets a page load what this server gives, and nothing else.
const policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// screens are the addresses below which the page finds its way by itself.
var screens = []string{"jobs", "queues", "dead", "flows", "runs", "schedules", "workers", "history", "alerts", "bad", "events", "keys", "audit", "signin"}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	hash  string // of all files; a part of their addresses
	index string
	files map[string]*file // by their path in dist
}

// file is one that was built, as browsers get it.
type file struct {
	kind   string
	plain  []byte
	packed func() []byte // gzip; empty where it gains nothing
}

// New reads the files that were built.
func New() *Console {
	c := &Console{files: map[string]*file{}}
	sum := sha256.New()
	// The files are part of the program: reading them cannot fail.
	_ = fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := dist.ReadFile(name)
		sum.Write([]byte(name))
		sum.Write(text)
		name = strings.TrimPrefix(name, "dist/")
		c.files[name] = newFile(name, text)
		return err
	})
	c.hash = hex.EncodeToString(sum.Sum(nil))[:12]
	if index := c.files["index.html"]; index != nil {
		c.index = string(index.plain)
		delete(c.files, "index.html")
	}
	return c
}

func newFile(name string, text []byte) *file {
	return &file{
		kind: mime.TypeByExtension(path.Ext(name)), plain: text,
		packed: sync.OnceValue(func() []byte {
			var b bytes.Buffer
			w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
			w.Write(text)
			w.Close() // to memory: it cannot fail
			if b.Len() >= len(text) {
				return nil
			}
			return b.Bytes()
		}),
	}
}

// Register puts the pages on a mux, and nothing else: an address that is not theirs is
// answered as it was without them.
func (c *Console) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", c.page)
	mux.HandleFunc("GET /assets/{hash}/{name...}", c.asset)
	for _, s := range screens {
		mux.HandleFunc("GET /"+s, c.page)
		mux.HandleFunc("GET /"+s+"/{rest...}", c.page)
	}
}

// Handler serves the pages, for programs that mount them below a prefix, which they
// take off (http.StripPrefix). The API must be below the same prefix.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	c.Register(mux)
	return mux
}

// page answers any screen with the same page. Its links to files are relative, so that
// it need not know what a proxy has taken off the front of the path.
func (c *Console) page(w http.ResponseWriter, r *http.Request) {
	up := "./" + strings.Repeat("../", strings.Count(r.URL.EscapedPath(), "/")-1)
	text := []byte(strings.ReplaceAll(c.index, `"./assets/`, `"`+up+"assets/"+c.hash+"/"))
	h := w.Header()
	careful(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.Write(text) // a browser that has gone needs no answer
}

// asset answers with a file. An address with another hash is of another build: its
// page is out of date, and must not get files that do not fit.
func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	f := c.files["assets/"+r.PathValue("name")]
	if f == nil || r.PathValue("hash") != c.hash {
		http.NotFound(w, r)
		return
	}
	text, h := f.plain, w.Header()
	careful(h)
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	if packed := f.packed(); packed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		text = packed
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.Write(text)
}

func careful(h http.Header) { h.Set("X-Content-Type-Options", "nosniff") }
