package estimate

import "math"

// A sketch counts positive numbers in bins that grow by binRatio, so a quantile is
// right within 5 %. Old samples count less and less: whenever as many have come as
// are to matter, all counts are halved.
const (
	bins     = 340
	binRatio = 1.1
	binFirst = 1e-6 // seconds, or a ratio; the last bin begins at 1e8
)

type sketch struct {
	counts [bins]float32
	total  float32
}

func binOf(v float64) int {
	if !(v > binFirst) {
		return 0
	}
	return min(bins-1, 1+int(math.Log(v/binFirst)/math.Log(binRatio)))
}

func (s *sketch) add(v float64, window float32) {
	if s.total >= window {
		s.total = 0
		for i := range s.counts {
			s.counts[i] /= 2
			s.total += s.counts[i]
		}
	}
	s.counts[binOf(v)]++
	s.total++
}

// quantile of the samples; 0 where there are none.
func (s *sketch) quantile(q float64) float64 { return s.tail(q, 0) }

// ends are the low end, the middle and the high end of the stated share.
func (s *sketch) ends() [3]float64 {
	return [3]float64{s.quantile(lowEnd), s.quantile(0.5), s.quantile(highEnd)}
}

// tail is the quantile of those samples only that are above a value; 0: none is.
func (s *sketch) tail(q, above float64) float64 {
	from, total := 0, s.total
	if above > 0 {
		from, total = binOf(above), 0
		for _, n := range s.counts[from:] {
			total += n
		}
	}
	if total <= 0 {
		return 0
	}
	rank := float32(q) * total
	last := 0.0
	for i := from; i < bins; i++ {
		n := s.counts[i]
		if n == 0 {
			continue
		}
		last = lower(i + 1)
		if rank <= n {
			within := float64(max(rank, 0) / n)
			return max(above, lower(i)*math.Pow(binRatio, within))
		}
		rank -= n
	}
	return max(above, last)
}

// lower bound of a bin.
func lower(i int) float64 { return binFirst * math.Pow(binRatio, float64(i-1)) }

// packed is a sketch as it is stored: the counts from the first that is not zero.
type packed struct {
	First  int       `json:"f,omitempty"`
	Counts []float32 `json:"c,omitempty"`
}

func (s *sketch) pack() packed {
	first, last := -1, -1
	for i, n := range s.counts {
		if n > 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return packed{}
	}
	p := packed{First: first, Counts: make([]float32, 0, last-first+1)}
	for _, n := range s.counts[first : last+1] {
		p.Counts = append(p.Counts, float32(math.Round(float64(n)*4)/4))
	}
	return p
}

func (p packed) unpack() (s sketch) {
	for i, n := range p.Counts {
		if at := p.First + i; at >= 0 && at < bins && n > 0 && n < 1e9 {
			s.counts[at] = n
			s.total += n
		}
	}
	return s
}
