package image

import (
	"encoding/binary"
	"fmt"
	stdimage "image"
	"os"
)

// pixels are those of a picture, in a file of libvips (a header of 64 bytes, then
// lines of bytes) or in memory.
type pixels struct {
	size  Size
	bands int
	file  *os.File // nil: in memory
	mem   []byte
}

const vipsHeader = 64

func openPixels(path string) (*pixels, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	head := make([]byte, vipsHeader)
	if _, err = f.ReadAt(head, 0); err != nil {
		f.Close()
		return nil, err
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if head[0] == 8 { // the magic number, of which the first byte tells the order
		order = binary.BigEndian
	}
	at := func(i int) int { return int(order.Uint32(head[i:])) }
	p := &pixels{size: Size{at(4), at(8)}, bands: at(12), file: f}
	// The format of a value (0: a byte) and its coding (0: none).
	if at(20) != 0 || at(24) != 0 || p.bands < 1 || p.bands > 4 || p.size.Width < 1 || p.size.Height < 1 {
		f.Close()
		return nil, fmt.Errorf("the pixels are of a kind that is not known: %d bands, format %d, coding %d", p.bands, at(20), at(24))
	}
	return p, nil
}

// bare cuts off what libvips keeps behind the pixels: EXIF, profiles, texts. It has
// to look whether all pixels are there: libvips that runs short of memory may end
// with a file that is too short, and no failure.
func (p *pixels) bare() error {
	end := vipsHeader + int64(p.at(0, p.size.Height))
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < end {
		return fmt.Errorf("the pixels are not all there: %d of %d bytes", info.Size(), end)
	}
	return p.file.Truncate(end)
}

func inMemory(m *stdimage.NRGBA) *pixels {
	return &pixels{size: Size{m.Rect.Dx(), m.Rect.Dy()}, bands: 4, mem: m.Pix}
}

func (p *pixels) Close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

func (p *pixels) at(x, y int) int { return (y*p.size.Width + x) * p.bands }

// line reads n pixels; those in memory are given as they are.
func (p *pixels) line(buf []byte, x, y, n int) ([]byte, error) {
	i, length := p.at(x, y), n*p.bands
	if p.file == nil {
		return p.mem[i : i+length], nil
	}
	_, err := p.file.ReadAt(buf[:length], int64(vipsHeader+i))
	return buf[:length], err
}

func (p *pixels) write(line []byte, x, y int) error {
	if p.file == nil {
		return nil // it was changed in place
	}
	_, err := p.file.WriteAt(line, int64(vipsHeader+p.at(x, y)))
	return err
}

// lay puts a mark on the pixels.
func (p *pixels) lay(img *pixels, m *mark) error {
	x, y := m.place(p.size, img.size)
	width, height := min(img.size.Width, p.size.Width-x), min(img.size.Height, p.size.Height-y)
	mine, theirs, marks := make([]byte, width*4), make([]byte, width*4), make([]byte, width*4)
	for row := range height {
		src, err := img.line(theirs, 0, row, width)
		if err != nil {
			return err
		}
		dst, err := p.line(mine, x, y+row, width)
		if err != nil {
			return err
		}
		lay(dst, p.bands, widen(marks, src, img.bands), m.Opacity)
		if err := p.write(dst, x, y+row); err != nil {
			return err
		}
	}
	return nil
}

// widen makes NRGBA of a line with any number of values for each pixel.
func widen(to, line []byte, bands int) []byte {
	if bands == 4 {
		return line
	}
	n := len(line) / bands
	for i := range n {
		v := line[i*bands : (i+1)*bands]
		switch bands {
		case 1:
			to[4*i], to[4*i+1], to[4*i+2], to[4*i+3] = v[0], v[0], v[0], 255
		case 2:
			to[4*i], to[4*i+1], to[4*i+2], to[4*i+3] = v[0], v[0], v[0], v[1]
		case 3:
			to[4*i], to[4*i+1], to[4*i+2], to[4*i+3] = v[0], v[1], v[2], 255
		}
	}
	return to[:4*n]
}
