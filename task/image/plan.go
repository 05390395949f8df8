package image

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forebayhq/forebay/storage"
)

// plan is what a backend carries out. It is what a child process is told.
type plan struct {
	Source  source   `json:"source"`
	Box     Size     `json:"box,omitzero"` // the picture has to fit in; a zero side is no bound
	Marks   []mark   `json:"marks,omitempty"`
	Outputs []output `json:"outputs"`
}

// output is one file to be made.
type output struct {
	Stage   string `json:"stage"`
	Name    string `json:"name"` // the variant's; empty: the result itself
	File    string `json:"file"`
	Format  string `json:"format"`
	Quality int    `json:"quality"`
	Box     Size   `json:"box,omitzero"` // of a thumbnail
}

// made is an output that is there.
type made struct {
	output
	Size
}

// Stages, as people see them.
const (
	stageLoad      = "load"
	stageResize    = "resize"
	stageWatermark = "watermark"
	stageCompress  = "compress"
	stageConvert   = "convert"
	stageThumbnail = "thumbnail"
)

// newPlan checks the data of a job and puts its steps in order. What depends on the
// source is filled when that is there (settle).
func newPlan(d Data) (*plan, error) {
	if err := storage.CheckName(d.Source); err != nil {
		return nil, bad("source", "%q is not the name of an object", d.Source)
	}
	p := &plan{Source: source{Name: d.Source, File: "source"}}
	steps := d.Steps
	if len(steps) == 0 {
		steps = DefaultSteps()
	}
	if len(steps) > maxSteps {
		return nil, bad("steps", "there are %d steps; at most %d are allowed", len(steps), maxSteps)
	}
	for i, s := range steps {
		at := fmt.Sprintf("steps[%d]", i)
		if err := s.check(at); err != nil {
			return nil, err
		}
		if err := p.add(s, at); err != nil {
			return nil, err
		}
	}
	if len(p.Outputs) == 0 {
		p.Outputs = append(p.Outputs, output{Stage: stageCompress})
	}
	slices.SortStableFunc(p.Outputs, func(a, b output) int { return rank(a.Stage) - rank(b.Stage) })
	return p, p.name()
}

// rank puts the outputs in order: the result comes first.
func rank(stage string) int {
	return slices.Index([]string{stageCompress, stageConvert, stageThumbnail}, stage)
}

func (p *plan) add(s Step, at string) error {
	switch s.Op {
	case opResize:
		if p.Box != (Size{}) {
			return bad(at, "there is a resize already; thumbnail makes further sizes")
		}
		p.Box = Size{s.Width, s.Height}
	case opWatermark:
		if len(p.Marks) == maxMarks {
			return bad(at, "at most %d watermarks are allowed", maxMarks)
		}
		p.Marks = append(p.Marks, newMark(s, len(p.Marks)))
	case opCompress:
		if len(p.Outputs) > 0 && slices.ContainsFunc(p.Outputs, func(o output) bool { return o.Stage == stageCompress }) {
			return bad(at, "there is a compress already; convert makes further formats")
		}
		p.Outputs = append(p.Outputs, output{Stage: stageCompress, Format: s.Format, Quality: s.Quality})
	case opConvert, opConvert2:
		p.Outputs = append(p.Outputs, output{Stage: stageConvert, Name: s.Format, Format: s.Format, Quality: s.Quality})
	case opThumbnail:
		for _, z := range s.Sizes {
			name := fmt.Sprintf("thumb-%dx%d", z.Width, z.Height)
			if s.Format != "" {
				name += "-" + s.Format
			}
			p.Outputs = append(p.Outputs, output{Stage: stageThumbnail, Name: name, Format: s.Format, Quality: s.Quality, Box: z})
		}
	}
	return nil
}

// name refuses outputs that would overwrite each other. Where nothing is
// compressed the first conversion is the result.
func (p *plan) name() error {
	if p.Outputs[0].Stage == stageConvert {
		p.Outputs[0].Name = ""
	}
	seen := map[string]bool{}
	for i, o := range p.Outputs {
		if seen[o.Name] {
			return bad("steps", "two outputs are called %q", o.Name)
		}
		seen[o.Name] = true
		p.Outputs[i].File = fmt.Sprintf("out%d", i)
	}
	return nil
}

// settle fills what depends on the source.
func (p *plan) settle() {
	for i := range p.Outputs {
		o := &p.Outputs[i]
		if o.Format = strings.ToLower(o.Format); o.Format == "jpg" {
			o.Format = formatJPEG
		}
		if o.Format == "" {
			o.Format = p.Source.Format
		}
		if o.Format == formatGIF {
			o.Format = formatPNG // of one frame, and with its transparency
		}
		if o.Quality == 0 {
			o.Quality = 80
			if o.Format == formatAVIF {
				o.Quality = 60
			}
		}
		ext, _ := extension(o.Format)
		o.File += ext
	}
}

// inside fits a picture into the box. It is never enlarged.
func (b Size) inside(s Size) Size {
	scale := 1.0
	if b.Width > 0 {
		scale = min(scale, float64(b.Width)/float64(s.Width))
	}
	if b.Height > 0 {
		scale = min(scale, float64(b.Height)/float64(s.Height))
	}
	if scale == 1 {
		return s
	}
	return Size{max(1, int(float64(s.Width)*scale+0.5)), max(1, int(float64(s.Height)*scale+0.5))}
}

func (p *plan) withoutCompress() *plan {
	rest := *p
	rest.Outputs = slices.DeleteFunc(slices.Clone(p.Outputs), func(o output) bool { return o.Stage == stageCompress })
	return &rest
}

// stages counts what is told while the plan is carried out.
func (p *plan) stages() int {
	n := 1 + len(p.Outputs)
	if len(p.Marks) > 0 {
		n++
	}
	return n
}

func (p *plan) avif() bool {
	return p.Source.Format == formatAVIF || slices.ContainsFunc(p.Outputs, func(o output) bool { return o.Format == formatAVIF })
}

// first is the stage that brings the picture in.
func (p *plan) first() string {
	if p.Box != (Size{}) {
		return stageResize
	}
	return stageLoad
}
