package storage

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/forebayhq/forebay"
)

// inline are the types that a browser may show by itself: none of them can run a
// script. All others are downloaded.
var inline = map[string]bool{
	"image/jpeg": true, "image/png": true, "image/webp": true, "image/avif": true, "image/gif": true,
	"text/plain": true, "text/csv": true, "application/json": true,
}

// ServeHTTP serves the object whose name is the path below the prefix that was
// stripped (http.StripPrefix). It answers ranges and conditions.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	// Set first, so that they are on errors too.
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // pictures are there to be shown elsewhere
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	body, object, err := s.Get(r.Context(), name)
	if err != nil {
		status := http.StatusServiceUnavailable
		switch forebay.CodeOf(err) {
		case forebay.CodeNotFound, forebay.CodeInvalid:
			status, err = http.StatusNotFound, fmt.Errorf("there is no such file")
		case forebay.CodeUnauthorized:
			err = fmt.Errorf("the storage refuses to give the file")
		}
		http.Error(w, err.Error(), status)
		return
	}
	defer body.Close()
	kind, _, _ := strings.Cut(object.ContentType, ";")
	if kind = strings.TrimSpace(strings.ToLower(kind)); inline[kind] {
		h.Set("Content-Type", object.ContentType)
	} else {
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", `attachment; filename="`+path.Base(name)+`"`)
	}
	// A repeated attempt of a job writes the same name again: caches ask after an hour.
	h.Set("Cache-Control", "public, max-age=3600")
	h.Set("ETag", fmt.Sprintf(`"%x-%x"`, object.Modified.UnixNano(), object.Size))
	http.ServeContent(w, r, "", object.Modified, body)
}
