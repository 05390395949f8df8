//go:build e2e && linux

package e2e

import (
	"bufio"
	"encoding/json"
	"image"
	"image/color"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// pictureProgress is the answer about a picture's job.
type pictureProgress struct {
	Code    int
	Message string
	Data    struct {
		JobID, State, Stage string
		Progress            float64
		Result              *made
		FailedReason        *string
	}
}

// A photo is answered at once; its stream shows each stage and ends by itself; what
// was made is served and is what was asked for.
func TestPhoto(t *testing.T) {
	s := jobServer(t)
	picture := jpegOf(t, photo(2000, 1500))
	before := time.Now()
	up := s.upload(picture, "width", "800", "quality", "75", "watermark", "© Forebay", "gravity", "southeast",
		"format", "webp", "thumbnails", "200x200,64x64")
	t.Logf("%d KiB were answered after %s", len(picture)>>10, time.Since(before))
	d := up.Data
	if up.Code != 0 || d.Status != "processing" || d.EstimatedSeconds < 1 || d.ProgressURL != "/api/images/"+d.JobID+"/progress" {
		t.Fatalf("the answer is %+v", up)
	}

	stages, names := s.rawStream(d.StreamURL)
	for _, stage := range []string{"resize", "watermark", "compress", "convert", "thumbnail", "completed"} {
		if !slices.Contains(stages, stage) {
			t.Errorf("the stream shows the stages %q, and not %s", stages, stage)
		}
	}
	if names[0] != "snapshot" || names[len(names)-1] != "done" {
		t.Errorf("the stream has the events %q", names)
	}
	p := s.picture(d.JobID)
	if p.Data.State != "completed" || p.Data.Progress != 100 || p.Data.Result == nil || len(p.Data.Result.Variants) != 3 {
		t.Fatalf("the job ended as %+v", p)
	}
	for _, v := range p.Data.Result.Variants {
		size := s.fetch(v).Bounds().Size()
		want := map[string]image.Point{"webp": {X: 800, Y: 600}, "thumb-200x200": {X: 200, Y: 150}, "thumb-64x64": {X: 64, Y: 48}}[v.Name]
		if size != want {
			t.Errorf("%s is %v, want %v", v.Name, size, want)
		}
	}
	marked := s.fetch(p.Data.Result.drawn)
	if marked.Bounds().Size() != image.Pt(800, 600) || p.Data.Result.Format != "jpeg" {
		t.Errorf("the picture is %+v", p.Data.Result.drawn)
	}
	plain := s.upload(picture, "width", "800", "quality", "75")
	s.await(plain.Data.JobID, time.Minute, "completed")
	bare := s.fetch(s.picture(plain.Data.JobID).Data.Result.drawn)
	if in, out := apart(marked, bare, image.Rect(400, 500, 800, 600)), apart(marked, bare, image.Rect(0, 0, 400, 300)); in < 1 || out > in/4 {
		t.Errorf("a watermark changes its corner by %.2f and the opposite one by %.2f levels", in, out)
	}

	var none pictureProgress
	if status, err := s.call(http.MethodGet, "/api/images/none/progress", nil, &none); err != nil || status != http.StatusNotFound || none.Code != http.StatusNotFound || none.Message == "" {
		t.Errorf("an unknown id: status %d, %v: %+v", status, err, none)
	}
}

func (s *server) picture(id string) pictureProgress {
	s.t.Helper()
	var p pictureProgress
	s.must(http.StatusOK, http.MethodGet, "/api/images/"+id+"/progress", nil, &p)
	return p
}

// rawStream reads a stream from a bare connection until the server ends it.
func (s *server) rawStream(path string) (stages, names []string) {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: "+c.RemoteAddr().String()+"\r\nConnection: close\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	r := bufio.NewReader(c)
	chunked := false
	for line := "-"; line != "\r\n"; {
		if line, err = r.ReadString('\n'); err != nil {
			s.t.Fatal(err)
		}
		chunked = chunked || strings.EqualFold(line, "Transfer-Encoding: chunked\r\n")
	}
	body := io.Reader(r)
	if chunked {
		body = httputil.NewChunkedReader(r)
	}
	parse := parseSSE{take: func(e sseEvent) bool {
		var at struct {
			Stage    string          // of a picture
			Progress json.RawMessage // of a picture: a number; of any job: an object
		}
		if err := json.Unmarshal([]byte(e.data), &at); err != nil {
			s.t.Errorf("event %+v: %v", e, err)
		}
		var job progress
		if json.Unmarshal(at.Progress, &job) == nil {
			at.Stage = job.Stage
		}
		stages, names = append(stages, at.Stage), append(names, e.name)
		return true
	}}
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		parse.line(lines.Text())
	}
	if err := lines.Err(); err != nil || len(names) == 0 {
		s.t.Fatalf("the stream has the events %q and ended with %v", names, err)
	}
	return stages, names
}

// apart is how far two pictures are apart within a part of them, in levels of 255.
func apart(a, b image.Image, part image.Rectangle) float64 {
	sum, n := 0.0, 0
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			p, q := color.GrayModel.Convert(a.At(x, y)).(color.Gray), color.GrayModel.Convert(b.At(x, y)).(color.Gray)
			sum, n = sum+max(float64(p.Y)-float64(q.Y), float64(q.Y)-float64(p.Y)), n+1
		}
	}
	return sum / float64(n)
}

// Pictures that are turned, of other colours, too deep, damaged or a bomb. None of
// them costs the server its memory.
func TestHostilePictures(t *testing.T) {
	s := jobServer(t)
	cmyk, err := os.ReadFile(filepath.Join("..", "..", "task", "image", "testdata", "cmyk.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	whole := jpegOf(t, photo(1200, 800))
	bounded := s.watchMemory()
	cases := map[string]struct {
		picture []byte
		size    image.Point // empty: it is refused
		says    string
	}{
		"turned":    {turned(whole, 6), image.Pt(200, 300), ""},
		"cmyk":      {cmyk, image.Pt(96, 72), ""}, // it is not made larger
		"16 bits":   {deepPNG(t, 600, 400), image.Pt(300, 200), ""},
		"truncated": {whole[:len(whole)/3], image.Point{}, "image"},
		"bomb":      {bombPNG(), image.Point{}, "100000000 pixels"},
	}
	ids := map[string]string{}
	for name, c := range cases {
		ids[name] = s.upload(c.picture, "width", "300", "height", "300").Data.JobID
	}
	for name, c := range cases {
		j := s.await(ids[name], time.Minute, "completed", "dead")
		p := s.picture(ids[name])
		if c.says != "" {
			if j.State != "dead" || p.Data.FailedReason == nil || !strings.Contains(*p.Data.FailedReason, c.says) {
				t.Errorf("%s ended as %s: %+v", name, j.State, j)
			}
			continue
		}
		if j.State != "completed" {
			t.Errorf("%s ended as %s: %s", name, j.State, j.FailedReason)
			continue
		}
		m, b := s.fetchBytes(p.Data.Result.drawn)
		if size := m.Bounds().Size(); size != c.size {
			t.Errorf("%s became %v, want %v", name, size, c.size)
		}
		if strings.Contains(string(b), camera) {
			t.Errorf("%s still tells the camera", name)
		}
	}
	bounded()
}

// A bomb that the settings allow is decoded, by either backend, in a process of its
// own: the server's memory is as before, and it works on the next picture.
func TestAllowedBomb(t *testing.T) {
	for _, backend := range []string{"vips", "go"} {
		t.Run(backend, func(t *testing.T) {
			s := jobServer(t, "images.maxPixels=200000000", "images.backend="+backend)
			bounded := s.watchMemory()
			j := s.await(s.upload(bombPNG()).Data.JobID, 2*time.Minute, "completed", "dead")
			t.Logf("the bomb ended as %s %s", j.State, j.FailedReason)
			s.await(s.upload(jpegOf(t, photo(300, 200))).Data.JobID, time.Minute, "completed")
			bounded()
		})
	}
}

// watchMemory looks at the server's memory until it is called again, and checks that
// there was a bound to it.
func (s *server) watchMemory() (bounded func()) {
	before, peak := s.rss(), int64(0)
	watched, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		for {
			peak = max(peak, s.rss())
			select {
			case <-stop:
				return
			case <-look.C:
			}
		}
	}()
	return func() {
		s.t.Helper()
		close(stop)
		<-watched
		s.t.Logf("memory %d MiB before, %d MiB at most", before>>20, peak>>20)
		if before == 0 || peak-before > most {
			s.t.Errorf("memory went from %d MiB to %d MiB", before>>20, peak>>20)
		}
	}
}
