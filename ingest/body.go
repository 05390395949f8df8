package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// budget bounds the bytes of all bodies that are held at one moment. It counts
// what has arrived, not what was announced: a thousand clients that announce much
// and send nothing take nothing from the others.
type budget struct {
	most int64
	held atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.held.Add(n) > b.most {
		b.held.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.held.Add(-n) }

// firstRead is the room that a body starts with.
const firstRead = 8 << 10

func outOfMemory() *problem {
	return &problem{status: http.StatusServiceUnavailable, code: "full", detail: "too many requests are being read at this moment; send it again", wait: time.Second}
}

// readBody reads the body as it is on the wire into c.wire.
func (c *call) readBody() *problem {
	limit, size := c.edge.cfg.Limits.WireBytes, c.r.ContentLength
	over := func() *problem {
		return tooLarge("body_too_large", fmt.Sprintf("the body is larger than %d bytes; send smaller batches", limit))
	}
	if size > limit {
		return over()
	}
	if size == 0 {
		c.wire = c.wire[:0]
		return nil
	}
	most := size
	if size < 0 {
		most = limit
	}
	if most >= slowestBody { // a smaller one has the server's ReadTimeout, which is as long
		// Not every writer can do this; those of net/http's server can.
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(bodyTime(most)))
	}
	var p *problem
	c.wire, p = c.fill(c.wire[:0], c.r.Body, most+1, func(n int64) *problem {
		if n > limit {
			return over()
		}
		return nil
	})
	return p
}

// fill reads all of r behind b, which is at most so many bytes with one to spare
// for its end. Each step of growth is taken from the budget first; check sees the
// length so far.
func (c *call) fill(b []byte, r io.Reader, most int64, check func(n int64) *problem) ([]byte, *problem) {
	counted, step := int64(0), int64(firstRead)
	for {
		if int64(len(b)) >= counted {
			step = max(1, min(step, most-counted))
			if !c.take(step) {
				return b, outOfMemory()
			}
			counted += step
			step = min(2*step, 1<<20)
			b = grow(b, int(counted))
		}
		n, err := r.Read(b[len(b):counted])
		b = b[:len(b)+n]
		if p := check(int64(len(b))); p != nil {
			return b, p
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, readProblem(err, len(b))
		}
	}
}

func grow(b []byte, size int) []byte {
	if cap(b) >= size {
		return b
	}
	return append(make([]byte, 0, size), b...)
}

func readProblem(err error, n int) *problem {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &problem{status: http.StatusRequestTimeout, code: "timeout", detail: "the body did not arrive in time"}
	}
	return unreadable(fmt.Sprintf("the body ends early, after %d bytes: %v; nothing of it was accepted", n, err))
}

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// decode gives the body without its compression. The bytes tell which there is;
// the header is believed only where it names one that is not understood.
func (c *call) decode() ([]byte, *problem) {
	switch {
	case bytes.HasPrefix(c.wire, gzipMagic):
		return c.inflate("gzip", c.gunzip)
	case bytes.HasPrefix(c.wire, zstdMagic):
		return c.inflate("zstd", c.unzstd)
	}
	encoding := strings.ToLower(c.r.Header.Get("Content-Encoding"))
	switch encoding {
	case "", "identity", "gzip", "x-gzip", "zstd":
		return c.wire, nil // whatever it says, the bytes are plain: some proxies decompress and keep the header
	}
	if looksLikeJSON(c.wire) {
		return c.wire, nil
	}
	return nil, &problem{status: http.StatusUnsupportedMediaType, code: "unsupported_encoding",
		detail: fmt.Sprintf("the Content-Encoding %q is not understood; gzip, zstd or none are", encoding)}
}

func looksLikeJSON(b []byte) bool {
	b = trimSpace(bytes.TrimPrefix(b, byteOrderMark))
	return len(b) > 0 && (b[0] == '{' || b[0] == '[')
}
