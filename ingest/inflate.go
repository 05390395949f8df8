package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// inflaters keeps decompressors, which are dear to make.
type inflaters struct {
	gzip      sync.Pool
	zstd      sync.Pool // for windows of up to smallWindow
	zstdLarge sync.Pool
}

// gunzip opens gzip data. It needs little memory, whatever the data says.
func (c *call) gunzip(src io.Reader) (io.Reader, func(), error) {
	pool := &c.edge.inflaters.gzip
	z, _ := pool.Get().(*gzip.Reader)
	if z == nil {
		z = new(gzip.Reader)
	}
	if err := z.Reset(src); err != nil {
		return nil, nil, err
	}
	return z, func() { pool.Put(z) }, nil
}

// A frame of zstd says how large a window its decompressor has to hold, and a
// frame of 20 bytes may say 8 MiB: what the library and the tool use at their usual
// levels for input of unknown length. So the window is taken from the budget, by
// the first frame; later ones may not ask for more than that kind of decompressor.
const (
	smallWindow = 1 << 20
	largeWindow = 8 << 20
)

var errNoRoom = errors.New("no room for the window")

func (c *call) unzstd(src io.Reader) (io.Reader, func(), error) {
	pool, window := &c.edge.inflaters.zstd, int64(smallWindow)
	var h zstd.Header
	if err := h.Decode(c.wire[:min(len(c.wire), zstd.HeaderMaxSize)]); err != nil {
		return nil, nil, err
	}
	if h.WindowSize > smallWindow || h.SingleSegment && h.FrameContentSize > smallWindow {
		pool, window = &c.edge.inflaters.zstdLarge, largeWindow
	}
	if !c.take(window) {
		return nil, nil, errNoRoom
	}
	z, _ := pool.Get().(*zstd.Decoder)
	if z == nil {
		var err error
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(window)))
		if err != nil {
			return nil, nil, err
		}
	}
	if err := z.Reset(src); err != nil {
		return nil, nil, err
	}
	return z, func() { pool.Put(z) }, nil
}

// ratioFree is how much a body may have decoded before its ratio counts.
const ratioFree = 1 << 20

func (c *call) inflate(name string, open func(io.Reader) (io.Reader, func(), error)) ([]byte, *problem) {
	l := &c.edge.cfg.Limits
	bad := func(err error, n int) *problem {
		return unreadable(fmt.Sprintf("the %s data is damaged or ends early, after %d decoded bytes: %v; nothing of it was accepted", name, n, err))
	}
	r, release, err := open(bytes.NewReader(c.wire))
	if err == errNoRoom {
		return nil, outOfMemory()
	}
	if err != nil {
		return nil, bad(err, 0)
	}
	defer release()
	var failed error
	tell := readerFunc(func(b []byte) (int, error) {
		n, err := r.Read(b)
		if err != nil && err != io.EOF {
			failed = err
		}
		return n, err
	})
	var p *problem
	c.plain, p = c.fill(c.plain[:0], tell, l.DecodedBytes+1, func(n int64) *problem {
		if n > l.DecodedBytes {
			return tooLarge("decoded_too_large", fmt.Sprintf("the body is larger than %d bytes once decompressed; send smaller batches", l.DecodedBytes))
		}
		if n > ratioFree && n-ratioFree > l.Ratio*int64(len(c.wire)) {
			return tooLarge("decoded_too_large", fmt.Sprintf("the body grows more than %d times when decompressed", l.Ratio))
		}
		return nil
	})
	switch {
	case errors.Is(failed, zstd.ErrDecoderSizeExceeded) || errors.Is(failed, zstd.ErrWindowSizeExceeded):
		return nil, tooLarge("decoded_too_large", fmt.Sprintf("the zstd data needs more memory than allowed: %v", failed))
	case failed != nil:
		return nil, bad(failed, len(c.plain))
	case p != nil:
		return nil, p
	}
	return c.plain, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
