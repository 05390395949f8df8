package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// Whatever is wrong with the queue, the doctor says what to do; events wait.
func TestDoctorTellsWhatBecomesOfEvents(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	for code, want := range map[string]string{"QueueDoesNotExist": "make the queue", "AccessDenied": "what the role may do"} {
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"com.amazonaws.sqs#` + code + `","message":"no"}`))
		}))
		d := &doctor{settings: &config.Settings{}}
		d.settings.SQS.URL, d.settings.SQS.Region, d.settings.SQS.Endpoint = far.URL+"/1/events", "us-east-1", far.URL
		found := d.shared(t.Context())
		far.Close()
		if len(found) != 1 || found[0].Grade != gradeFail || !strings.Contains(found[0].Do, want) {
			t.Errorf("%s: %+v, not %q", code, found, want)
		}
	}
}
