package ingest

import (
	"net/http"
	"testing"
)

func TestAContextIsKeptWhereItIsOne(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for text, want := range map[string]bool{
		good:            true,
		"":              false,
		good[:54]:       false,
		"01" + good[2:]: false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": false,
		"00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": false,
	} {
		got := traceOf(http.Header{"Traceparent": {text}})
		if (got != nil) != want || want && got[traceHeader] != text {
			t.Errorf("%q: %v", text, got)
		}
	}
	if got := traceOf(http.Header{"Traceparent": {good, good}}); got != nil {
		t.Errorf("two of them: %v", got)
	}
}
