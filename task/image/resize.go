package image

import (
	stdimage "image"
	"math"

	"github.com/kovidgoyal/imaging"
)

// resized gives a picture another size, by Lanczos' filter.
func resized(m stdimage.Image, to Size, opaque bool) (*stdimage.NRGBA, error) {
	size := Size{m.Bounds().Dx(), m.Bounds().Dy()}
	if n, ok := m.(*stdimage.NRGBA); ok && size == to {
		return n, nil
	}
	if !opaque && size == to {
		return asNRGBA(m), nil
	}
	if !opaque {
		return asNRGBA(imaging.ResizeWithOpacity(m, to.Width, to.Height, imaging.Lanczos, false)), nil
	}
	if p, ok := m.(*stdimage.YCbCr); ok && p.Rect.Min == (stdimage.Point{}) {
		return resizedLines(&planes{YCbCr: p}, size, to, true)
	}
	return resizedLines(scan(m), size, to, false)
}

// resizedLines needs no more of the source at a time than the filter is high.
func resizedLines(from lines, size, to Size, ycc bool) (*stdimage.NRGBA, error) {
	out := stdimage.NewNRGBA(stdimage.Rect(0, 0, to.Width, to.Height))
	across, down := lanczos(size.Width, to.Width), lanczos(size.Height, to.Height)
	window := make([][]uint64, highest(down))
	for i := range window {
		window[i] = make([]uint64, to.Width)
	}
	source, line := make([]uint64, size.Width), make([]uint64, to.Width)
	read := 0
	for y, t := range down {
		for ; read < t.from+len(t.weights); read++ {
			if err := from.next(source); err != nil {
				return nil, err
			}
			squeeze(window[read%len(window)], source, across)
		}
		for x := range line {
			line[x] = nothing
		}
		for i, weight := range t.weights {
			for x, v := range window[(t.from+i)%len(window)] {
				line[x] += v * weight
			}
		}
		for x, sum := range line {
			line[x] = settle(sum)
		}
		toRGB(out.Pix[y*out.Stride:][:out.Stride], line, ycc)
	}
	for ; read < size.Height; read++ { // what is damaged below counts, too
		if err := from.next(source); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// highest tells how many lines are needed at a time.
func highest(down []taps) (most int) {
	end := 0
	for _, t := range down {
		end = max(end, t.from+len(t.weights))
		most = max(most, end-t.from)
	}
	return most
}

// squeeze makes one line as wide as wanted.
func squeeze(to, from []uint64, across []taps) {
	for x, t := range across {
		sum := uint64(nothing)
		pixels := from[t.from:][:len(t.weights)]
		for i, weight := range t.weights {
			sum += pixels[i] * weight
		}
		to[x] = settle(sum)
	}
}

// taps are the neighbours that make one pixel, and how much each counts: together one.
// Negative weights are those of two's complement.
type taps struct {
	from    int
	weights []uint64
}

func lanczos(from, to int) []taps {
	all := make([]taps, to)
	if from == to {
		for i := range all {
			all[i] = taps{i, []uint64{one}}
		}
		return all
	}
	step := float64(from) / float64(to)
	scale := max(1, step)
	reach := math.Ceil(scale * imaging.Lanczos.Support)
	for i := range all {
		middle := (float64(i)+0.5)*step - 0.5
		first, last := max(0, int(math.Ceil(middle-reach))), min(int(math.Floor(middle+reach)), from-1)
		weights := make([]float64, 0, last-first+1)
		sum := 0.0
		for j := first; j <= last; j++ {
			w := imaging.Lanczos.Kernel((float64(j) - middle) / scale)
			weights = append(weights, w)
			sum += w
		}
		all[i] = rounded(first, weights, sum)
	}
	return all
}

// rounded gives weights as numbers, so that their sum stays exact: what rounding leaves goes to
// the largest.
func rounded(first int, weights []float64, sum float64) taps {
	numbers, left, largest := make([]uint64, len(weights)), one, 0
	for i, w := range weights {
		n := int(math.Round(w / sum * one))
		numbers[i] = uint64(n)
		left -= n
		if w > weights[largest] {
			largest = i
		}
	}
	numbers[largest] += uint64(left)
	for len(numbers) > 1 && numbers[0] == 0 {
		numbers, first = numbers[1:], first+1
	}
	for len(numbers) > 1 && numbers[len(numbers)-1] == 0 {
		numbers = numbers[:len(numbers)-1]
	}
	return taps{first, numbers}
}
