package image

import (
	"errors"
	"io"

	stdimage "image"

	"github.com/forebayhq/forebay/internal/jpeg"
)

// reduced decodes a photo at a part of its size, while it is resized: neither is ever
// there as a whole. The error is jpeg.ErrOther for what has to be decoded in full.
func reduced(data []byte, s source, box Size) (*stdimage.NRGBA, error) {
	to := box.inside(s.Size)
	by := divisor(s.Size, to)
	if s.Format != formatJPEG || by == 1 {
		return nil, jpeg.ErrOther
	}
	r, err := jpeg.NewReader(data, by)
	if err != nil || r.Full != [2]int{s.Width, s.Height} {
		return nil, jpeg.ErrOther
	}
	b := newBands(r)
	defer b.close()
	return resizedLines(b, Size{r.Width, r.Height}, to, true)
}

// bandsAhead are decoded while those before them are resized.
const bandsAhead = 4

// bands are the lines of a photo. They are decoded by a goroutine, which owns full and
// closes it; whoever reads them owns empty, and closes that.
type bands struct {
	full, empty chan *jpeg.Band
	err         error // once full is closed
	now         *jpeg.Band
	y           int
}

func newBands(r *jpeg.Reader) *bands {
	b := &bands{full: make(chan *jpeg.Band, bandsAhead), empty: make(chan *jpeg.Band, bandsAhead)}
	for range bandsAhead {
		b.empty <- &jpeg.Band{}
	}
	go b.decode(r)
	return b
}

func (b *bands) decode(r *jpeg.Reader) {
	defer close(b.full)
	for band := range b.empty {
		if b.err = r.Next(band); b.err != nil {
			return
		}
		b.full <- band
	}
}

func (b *bands) next(to []uint64) error {
	for b.now == nil || b.y == b.now.Lines {
		if b.now != nil {
			b.empty <- b.now
		}
		if b.now, b.y = <-b.full, 0; b.now == nil {
			if errors.Is(b.err, io.EOF) {
				return jpeg.ErrOther // there are fewer lines than were stated
			}
			return b.err
		}
	}
	at := b.y * b.now.Stride
	y, cb, cr := b.now.Planes[0][at:][:len(to)], b.now.Planes[1][at:][:len(to)], b.now.Planes[2][at:][:len(to)]
	for x := range to {
		to[x] = pack(y[x], cb[x], cr[x])
	}
	b.y++
	return nil
}

// close waits for the end of the goroutine.
func (b *bands) close() {
	close(b.empty)
	for range b.full {
	}
}
