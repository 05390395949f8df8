package forebay_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
)

func TestPriorityZeroValueIsTheMiddle(t *testing.T) {
	var unset forebay.Priority
	if unset.Level() != 5 {
		t.Errorf("unset priority has level %d, want 5", unset.Level())
	}
	for in, want := range map[int]int{-3: 0, 0: 0, 5: 5, 9: 9, 40: 9} {
		if got := forebay.At(in).Level(); got != want {
			t.Errorf("At(%d).Level() = %d, want %d", in, got, want)
		}
	}
}

func TestErrorKeepsCodeAndCauseThroughWrapping(t *testing.T) {
	inner := forebay.Errorf(forebay.CodeFull, "sqlite: commit", "no room: %w", io.ErrShortWrite)
	err := fmt.Errorf("send: %w", inner)
	if forebay.CodeOf(err) != forebay.CodeFull || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("lost code or cause of %v", err)
	}
	if want := "send: sqlite: commit: no room: short write"; err.Error() != want {
		t.Errorf("text is %q, want %q: each cause once", err, want)
	}
	if forebay.CodeOf(io.EOF) != forebay.CodeInternal || forebay.CodeOf(nil) != "" {
		t.Error("CodeOf: a foreign error is internal, nil has none")
	}
}

func TestHandlersSteerThroughWrappedErrors(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cause := forebay.Cause{Code: "22003", Detail: map[string]string{"column": "payload"}}
	err := fmt.Errorf("row 7: %w", forebay.Permanent(forebay.Because(cause, io.ErrNoProgress)))
	if !forebay.IsPermanent(err) || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%v should be permanent and keep its cause", err)
	}
	got := forebay.CauseOf(err, now)
	if got.Code != "22003" || got.Detail["column"] != "payload" || got.Message != err.Error() || !got.At.Equal(now) {
		t.Errorf("cause is %+v", got)
	}
	if d, ok := forebay.RetryDelay(fmt.Errorf("x: %w", forebay.RetryAfter(time.Minute, io.EOF))); !ok || d != time.Minute {
		t.Errorf("RetryDelay = %v, %v", d, ok)
	}
	if d, ok := forebay.SnoozeDelay(fmt.Errorf("x: %w", forebay.Snooze(time.Hour))); !ok || d != time.Hour {
		t.Errorf("SnoozeDelay = %v, %v", d, ok)
	}
	if _, ok := forebay.RetryDelay(io.EOF); ok || forebay.IsPermanent(io.EOF) {
		t.Error("a plain error steers nothing")
	}
	if c := forebay.CauseOf(io.EOF, now); c.Code != "handler" || c.Message != "EOF" {
		t.Errorf("a plain error's cause is %+v", c)
	}
}
