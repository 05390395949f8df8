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
	gzip, zstd sync.Pool
}

func (p *inflaters) gunzip(src io.Reader) (io.Reader, func(), error) {
	z, _ := p.gzip.Get().(*gzip.Reader)
	if z == nil {
		z = new(gzip.Reader)
	}
	if err := z.Reset(src); err != nil {
		return nil, nil, err
	}
	return z, func() { p.gzip.Put(z) }, nil
}

// zstdWindow is the most memory that the sender of a zstd frame may ask for; it
// is what the library's and the tool's usual levels need.
const zstdWindow = 8 << 20

func (p *inflaters) unzstd(src io.Reader) (io.Reader, func(), error) {
	z, _ := p.zstd.Get().(*zstd.Decoder)
	if z == nil {
		var err error
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, nil, err
		}
	}
	if err := z.Reset(src); err != nil {
		return nil, nil, err
	}
	return z, func() { p.zstd.Put(z) }, nil
}

// ratioFree is how much a body may have decoded before its ratio counts.
const ratioFree = 1 << 20

func (c *call) inflate(name string, open func(io.Reader) (io.Reader, func(), error)) ([]byte, *problem) {
	l := &c.edge.cfg.Limits
	bad := func(err error, n int) *problem {
		return unreadable(fmt.Sprintf("the %s data is damaged or ends early, after %d decoded bytes: %v; nothing of it was accepted", name, n, err))
	}
	r, release, err := open(bytes.NewReader(c.wire))
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
	c.plain, p = c.fill(c.plain[:0], tell, firstRead, func(n int64) *problem {
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
