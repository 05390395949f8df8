package bench_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/bench"
)

func TestLogGroups(t *testing.T) {
	t.Parallel()
	log, err := bench.OpenLog(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := bench.Load(t.Context(), 64, 640, 1, func(context.Context, int, int) error {
		return log.Append(bench.Payload())
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.N != 640 || got.Rate() <= 0 || got.P99 < got.P50 {
		t.Errorf("got %+v", got)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		series         bench.Series
		median, spread float64
	}{
		{nil, 0, 0},
		{bench.Series{4}, 4, 0},
		{bench.Series{3, 1, 2}, 2, 1},
		{bench.Series{4, 1, 3, 2}, 2.5, 1.2},
	} {
		if m, s := c.series.Median(), c.series.Spread(); m != c.median || s != c.spread {
			t.Errorf("%v: median %v, spread %v; want %v, %v", c.series, m, s, c.median, c.spread)
		}
	}
}

func TestBare(t *testing.T) {
	t.Parallel()
	event := `{"eventType":"app_open","userId":"u1","payload":` + string(bench.Payload()) + `}`
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{"/ingest/event", event, http.StatusAccepted},
		{"/ingest/event", `{"payload":{}}`, http.StatusBadRequest},
		{"/ingest/batch", `[` + event + `,` + event + `]`, http.StatusAccepted},
		{"/ingest/batch", `[{"eventType":"a"}]`, http.StatusBadRequest},
	} {
		w := httptest.NewRecorder()
		bench.Bare().ServeHTTP(w, httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body)))
		if w.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.path, c.body, w.Code, c.want)
		}
	}
}
