package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// A scrape that was given up says nothing for each of its families; a part that fails does.
func TestScrapeLog(t *testing.T) {
	var b strings.Builder
	l := scrapeLog{slog.New(slog.NewTextHandler(&b, nil))}
	l.Println("error encoding and sending metric family:", fmt.Errorf("write: %w", context.Canceled))
	if b.Len() > 0 {
		t.Errorf("a scrape that was given up: %s", &b)
	}
	l.Println("error gathering metrics:", errors.New("the disk is away"))
	if got := b.String(); !strings.Contains(got, `level=WARN msg="error gathering metrics: the disk is away"`) {
		t.Errorf("a part that fails: %q", got)
	}
}
