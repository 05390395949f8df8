package images_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	stdimage "image"
	"image/color"
	"image/jpeg"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/images"
	"github.com/forebayhq/forebay/storage"
	"github.com/forebayhq/forebay/stream"
	"github.com/forebayhq/forebay/task/image"
	"github.com/forebayhq/forebay/worker"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "image-worker" {
		os.Exit(image.ChildMain(os.Args[2:], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// service is the whole of it, on a real queue with a real worker.
type service struct {
	*httptest.Server
	broker *broker.Broker
	store  *storage.Store
	guards int // how many routes are guarded
}

func ok[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func serve(t *testing.T, work bool) *service {
	t.Helper()
	s := &service{}
	e := ok[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{Path: filepath.Join(t.TempDir(), "queue.db")}))
	s.broker = ok[*broker.Broker](t)(broker.New(e, broker.Config{}))
	s.store = ok[*storage.Store](t)(storage.Open(t.Context(), storage.Config{Address: t.TempDir()}))
	streams := ok[*stream.Streams](t)(stream.New(stream.Config{Broker: s.broker, Watcher: s.broker.Watcher()}))
	routes := ok[*images.Images](t)(images.New(images.Config{Jobs: s.broker, Store: s.store, Streams: streams, MaxBytes: 1 << 20}))
	mux := http.NewServeMux()
	routes.Register(mux, func(next http.Handler) http.Handler { s.guards++; return next })

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.broker.Watcher().Run(ctx); err != nil {
			t.Error(err)
		}
	})
	<-s.broker.Watcher().Ready()
	child := ok[[]string](t)(image.Executable("image-worker"))
	h := ok[*image.Handler](t)(image.New(ctx, image.Config{Store: s.store, Child: child, Backend: "vips", TempDir: t.TempDir()}))
	if work {
		w := ok[*worker.Worker](t)(worker.New(s.broker, worker.Config{Queue: "images", Jobs: h}))
		running.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		streams.Close()
		s.Close()
		cancel()
		running.Wait()
		h.Close()
		s.broker.Close()
		s.store.Close()
	})
	return s
}

func picture(t *testing.T, w, h int) []byte {
	t.Helper()
	m := stdimage.NewNRGBA(stdimage.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetNRGBA(x, y, color.NRGBA{uint8(x * 255 / w), uint8(y * 255 / h), uint8(x ^ y), 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// form makes a form of fields, which alternate between name and value.
func form(t *testing.T, file []byte, fields ...string) (string, io.Reader) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if file != nil {
		part, err := w.CreateFormFile("file", "../../etc/photo.jpg")
		if err != nil {
			t.Fatal(err)
		}
		part.Write(file)
	}
	w.Close()
	return w.FormDataContentType(), &b
}

type answer[T any] struct {
	Code    int
	Message string
	Data    T
}

func do[T any](t *testing.T, method, url, kind string, body io.Reader, headers ...string) (int, answer[T]) {
	t.Helper()
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var a answer[T]
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		t.Fatalf("%s %s: %d: %v", method, url, res.StatusCode, err)
	}
	return res.StatusCode, a
}

// events reads a stream to its end.
func events(t *testing.T, url string) (names []string, last string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if name, found := strings.CutPrefix(lines.Text(), "event: "); found {
			names = append(names, name)
		}
		if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
			last = data
		}
	}
	return names, last
}

func TestUploadProgressStreamAndFiles(t *testing.T) {
	t.Parallel()
	s := serve(t, true)
	kind, body := form(t, picture(t, 1000, 500), "width", "300", "quality", "70", "format", "webp", "watermark", "© us", "thumbnails", "50x50,20x20")
	status, up := do[images.Uploaded](t, "POST", s.URL+"/api/images/upload", kind, body)
	d := up.Data
	if status != 200 || up.Code != 0 || d.Status != "processing" || d.EstimatedSeconds < 1 || d.ProgressURL != "/api/images/"+d.JobID+"/progress" ||
		d.StreamURL != "/api/images/"+d.JobID+"/stream" || !strings.HasPrefix(d.OriginalURL, "/files/originals/") {
		t.Fatalf("%d %+v", status, up)
	}
	names, last := events(t, s.URL+d.StreamURL)
	if len(names) < 2 || names[0] != "snapshot" || names[len(names)-1] != "done" || !strings.Contains(last, `"state":"completed"`) || !strings.Contains(last, `"progress":100`) {
		t.Errorf("events %v, the last of which has %s", names, last)
	}
	_, p := do[images.Progress](t, "GET", s.URL+d.ProgressURL, "", nil)
	var r image.Result
	if err := json.Unmarshal(p.Data.Result, &r); err != nil {
		t.Fatal(err)
	}
	if p.Data.State != "completed" || p.Data.Stage != "completed" || p.Data.Progress != 100 || p.Data.FailedReason != nil || r.Width != 300 || r.Height != 150 || len(r.Variants) != 3 {
		t.Fatalf("progress: %+v", p)
	}
	for _, url := range []string{d.OriginalURL, r.URL, r.Variants[0].URL, r.Variants[1].URL, r.Variants[2].URL} {
		res, err := http.Get(s.URL + url)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "image/") || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", url, res.StatusCode, res.Header)
		}
	}
	if s.guards != 3 {
		t.Errorf("%d routes are guarded", s.guards)
	}
}

func TestFailedPictureSaysWhy(t *testing.T) {
	t.Parallel()
	s := serve(t, true)
	whole := picture(t, 200, 200)
	_, up := do[images.Uploaded](t, "POST", s.URL+"/api/images/upload", "image/jpeg", bytes.NewReader(whole[:len(whole)/2])) // the whole body
	events(t, s.URL+up.Data.StreamURL)
	_, p := do[images.Progress](t, "GET", s.URL+up.Data.ProgressURL, "", nil)
	if p.Data.State != "dead" || p.Data.FailedReason == nil || !strings.Contains(*p.Data.FailedReason, "image") || p.Data.Result != nil && string(p.Data.Result) != "null" {
		t.Errorf("%+v", p)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := serve(t, false)
	good := picture(t, 20, 20)
	for name, c := range map[string]struct {
		file   []byte
		fields []string
		status int
		text   string
	}{
		"no file":        {nil, nil, 400, "file"},
		"empty":          {[]byte{}, nil, 400, "empty"},
		"text":           {[]byte("<html>"), nil, 415, "no picture"},
		"too large":      {append(good, make([]byte, 1<<20)...), nil, 413, "bytes"},
		"much too large": {append(good, make([]byte, 4<<20)...), nil, 413, "bytes"},
		"width":          {good, []string{"width", "wide"}, 400, "width"},
		"quality":        {good, []string{"quality", "101"}, 400, "quality"},
		"format":         {good, []string{"format", "bmp"}, 400, "format"},
		"thumbnails":     {good, []string{"thumbnails", "big"}, 400, "thumbnails"},
		"steps":          {good, []string{"steps", "{}"}, 400, "steps"},
		"a step":         {good, []string{"steps", `[{"op":"melt"}]`}, 400, "op"},
		"an odd field":   {good, []string{"steps", `[{"op":"compress","qualty":10}]`}, 400, "qualty"},
		"steps and more": {good, []string{"steps", `[{"op":"compress"}]`, "width", "10"}, 400, "beside"},
		"two lists":      {good, []string{"steps", `[{"op":"compress"}] []`}, 400, "behind"},
		"unknown option": {good, []string{"widht", "10"}, 400, `no option "widht"`},
		"odd thumbnail":  {good, []string{"thumbnails", "20x20px"}, 400, "no size"},
		"idle gravity":   {good, []string{"gravity", "north"}, 400, "watermark"},
		"long field":     {good, []string{"watermark", strings.Repeat("a", 5000)}, 400, "watermark"},
	} {
		kind, body := form(t, c.file, c.fields...)
		status, a := do[any](t, "POST", s.URL+"/api/images/upload", kind, body)
		if status != c.status || a.Code != c.status || !strings.Contains(a.Message, c.text) {
			t.Errorf("%s: %d %+v; %d with %q is expected", name, status, a, c.status, c.text)
		}
	}
	for _, route := range []string{"progress", "stream"} {
		if status, a := do[any](t, "GET", s.URL+"/api/images/none/"+route, "", nil); status != 404 || a.Code != 404 || a.Message == "" {
			t.Errorf("%s of an unknown job: %d %+v", route, status, a)
		}
	}
	for o := range s.store.List(t.Context(), "") {
		t.Errorf("a refused upload left %s", o.Name)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := serve(t, false)
	send := func(file []byte, fields ...string) (int, images.Uploaded) {
		kind, body := form(t, file, fields...)
		status, a := do[images.Uploaded](t, "POST", s.URL+"/api/images/upload", kind, body, "Idempotency-Key", "k1")
		return status, a.Data
	}
	_, first := send(picture(t, 20, 20))
	if status, again := send(picture(t, 20, 20)); status != 200 || again != first {
		t.Errorf("the same again: %d %+v; the first was %+v", status, again, first)
	}
	if status, _ := send(picture(t, 21, 20)); status != 422 {
		t.Errorf("another picture with the same key: %d", status)
	}
	if status, _ := send(picture(t, 20, 20), "width", "10"); status != 422 {
		t.Errorf("another width with the same key: %d", status)
	}
	var names []string
	for o := range s.store.List(t.Context(), "") {
		names = append(names, o.Name)
	}
	if fmt.Sprint(names) != "["+strings.TrimPrefix(first.OriginalURL, "/files/")+"]" {
		t.Errorf("stored: %v; of one upload is expected: %s", names, first.OriginalURL)
	}
}
