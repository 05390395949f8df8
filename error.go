package forebay

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code classifies an Error. Callers switch on it, never on text.
type Code string

const (
	CodeInvalid      Code = "invalid"      // the caller's input is wrong; do not repeat it as it is
	CodeNotFound     Code = "not_found"    // no such queue, message or dead letter
	CodeLeaseLost    Code = "lease_lost"   // the receipt is void: settled, expired or handed to another
	CodeUnsupported  Code = "unsupported"  // this engine cannot do that
	CodeClosed       Code = "closed"       // the engine or broker is closed or draining
	CodeFull         Code = "full"         // no room: disk, backlog or memory; try later
	CodeUnavailable  Code = "unavailable"  // a dependency does not answer; try later
	CodeInUse        Code = "in_use"       // another process owns the data folder
	CodeTooNew       Code = "too_new"      // the data was written by a newer version
	CodeDamaged      Code = "damaged"      // stored data fails its checks
	CodeUnauthorized Code = "unauthorized" // no key, or an unknown or revoked one
	CodeLimited      Code = "limited"      // over a rate or quota
	CodeTooLarge     Code = "too_large"    // over a size limit
	CodeCancelled    Code = "cancelled"    // the job is to stop: somebody cancelled it
	CodeConflict     Code = "conflict"     // its state, or its revision, does not allow that now
	CodeInternal     Code = "internal"     // a defect of ours
)

// Error is the one error type that crosses packages. Text is the whole message,
// its cause included; Err is there for errors.Is and errors.As only. Hint tells an
// operator what to do next; Field names the part of the input that is wrong.
type Error struct {
	Code  Code
	Op    string // the failing step in lower case: "sqlite: open"
	Text  string
	Field string
	Hint  string
	Err   error
}

func (e *Error) Error() string {
	s := e.Text
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	if e.Field != "" {
		s += " (" + e.Field + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error. Its text is whole; a %w in the format is also kept for
// errors.Is and errors.As.
func Errorf(code Code, op, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Op: op, Text: err.Error(), Err: errors.Unwrap(err)}
}

// CodeOf finds the code of an error; CodeInternal when it has none, empty for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// TextOf is what an error says to users: without the step that failed, which is for
// operators and names our parts.
func TextOf(err error) string {
	text := err.Error()
	if e := (*Error)(nil); errors.As(err, &e) && e.Op != "" {
		text = strings.Replace(text, e.Op+": ", "", 1)
	}
	return text
}

// Permanent marks a handler's error as not worth repeating: the message becomes
// a dead letter at once. Code and detail of a Cause are kept.
func Permanent(err error) error { return &permanent{err} }

type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

// IsPermanent tells whether an error was marked by Permanent.
func IsPermanent(err error) bool {
	var p *permanent
	return errors.As(err, &p)
}

// RetryAfter is a handler's failure that names its own wait; an attempt is charged.
func RetryAfter(d time.Duration, err error) error { return &retryAfter{err, d} }

type retryAfter struct {
	error
	d time.Duration
}

func (r *retryAfter) Unwrap() error { return r.error }

// RetryDelay finds the wait that RetryAfter named.
func RetryDelay(err error) (time.Duration, bool) {
	var r *retryAfter
	if errors.As(err, &r) {
		return r.d, true
	}
	return 0, false
}

// Cancel is a handler's own decision to end its job as cancelled.
func Cancel(reason string) error { return &cancel{reason} }

type cancel struct{ reason string }

func (c *cancel) Error() string { return "cancelled: " + c.reason }

func (c *cancel) Is(target error) bool { return target == ErrCancelled }

// Snooze asks for the message again after d without charging an attempt.
func Snooze(d time.Duration) error { return &snooze{d} }

type snooze struct{ d time.Duration }

func (s *snooze) Error() string { return fmt.Sprintf("snoozed for %s", s.d) }

// SnoozeDelay finds the wait that Snooze named.
func SnoozeDelay(err error) (time.Duration, bool) {
	var s *snooze
	if errors.As(err, &s) {
		return s.d, true
	}
	return 0, false
}

// The causes with which a handler's context is cancelled (context.Cause).
// Work that ends with one of them is released, not failed. Users of a job read their
// texts, so these say no package.
var (
	ErrDraining  = errors.New("draining, the process is shutting down")
	ErrLeaseLost = errors.New("lease lost, another consumer may own the message")
	// ErrCancelled and those below end jobs; what their handlers then return does
	// not count.
	ErrCancelled = errors.New("cancelled on request")
	ErrTimeout   = errors.New("the attempt took longer than its timeout")
	ErrDeadline  = errors.New("the job's deadline has passed")
)

// Because attaches a Cause (code, detail) to an error, to be kept with the
// failure. Its Message and At are filled where the error is settled.
func Because(c Cause, err error) error { return &because{err, c} }

type because struct {
	error
	cause Cause
}

func (b *because) Unwrap() error { return b.error }

// CauseOf describes an error as a Cause: what Because attached, else the code
// "handler" and the error's text.
func CauseOf(err error, at time.Time) Cause {
	c := Cause{Code: "handler"}
	var b *because
	if errors.As(err, &b) {
		c = b.cause
	}
	if c.Message == "" {
		c.Message = err.Error()
	}
	c.At = at
	return c
}
