package sqsapi

import (
	"io"
	"slices"
	"sync"
)

// buffer is bytes that are used again: of a body, or of an answer.
type buffer struct{ bytes []byte }

// keptBuffer bounds what one buffer keeps while it is not used.
const keptBuffer = 256 << 10

var buffers = sync.Pool{New: func() any { return &buffer{bytes: make([]byte, 0, 8<<10)} }}

func newBuffer() *buffer { return buffers.Get().(*buffer) }

// free gives a buffer back; nobody may look at its bytes afterwards.
func (b *buffer) free() {
	if cap(b.bytes) > keptBuffer {
		return
	}
	buffers.Put(&buffer{b.bytes[:0]})
	b.bytes = nil
}

// appendAll reads r to its end. Room is made as bytes come, not as they are announced,
// and each growth is told first: grow may refuse.
func appendAll(b []byte, r io.Reader, grow func(by int) error) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			if err := grow(cap(b)); err != nil {
				return b, err
			}
			b = slices.Grow(b, cap(b))
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}
