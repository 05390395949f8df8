package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/catalog"
)

const problemType = "application/problem+json"

// Problem is an error as RFC 9457 says, with our code.
type Problem struct {
	Type   string       `json:"type" example:"about:blank"`
	Title  string       `json:"title" example:"Not Found"`
	Status int          `json:"status" example:"404"`
	Code   forebay.Code `json:"code" example:"not_found" doc:"What to switch on."`
	Detail string       `json:"detail,omitempty" doc:"What is wrong, for people."`
	Field  string       `json:"field,omitempty" doc:"The part of the input that is wrong."`
	Hint   string       `json:"hint,omitempty" doc:"What to do next."`
	Errors []Wrong      `json:"errors,omitempty" doc:"Everything that is wrong with the input."`

	Problems []FlowProblem `json:"problems,omitempty" doc:"Everything that is wrong with a flow's file."`
}

// Wrong is one thing that is wrong with the input.
type Wrong struct {
	In      string `json:"in" example:"body" doc:"path, query, header or body"`
	Pointer string `json:"pointer" example:"/seqs/0" doc:"A JSON pointer into it."`
	Message string `json:"message"`
}

func (p *Problem) Error() string             { return p.Detail }
func (p *Problem) GetStatus() int            { return p.Status }
func (p *Problem) ContentType(string) string { return problemType }

func newProblem(status int, code forebay.Code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// problemOf maps our codes to HTTP, here and nowhere else.
func problemOf(err error) *Problem {
	var ready *Problem
	if errors.As(err, &ready) {
		return ready
	}
	code := forebay.CodeOf(err)
	status := http.StatusInternalServerError
	switch code {
	case forebay.CodeInvalid:
		status = http.StatusBadRequest
	case forebay.CodeNotFound:
		status = http.StatusNotFound
	case forebay.CodeLeaseLost, forebay.CodeInUse, forebay.CodeTooNew, forebay.CodeConflict, forebay.CodeCancelled:
		status = http.StatusConflict
	case forebay.CodeUnsupported:
		status = http.StatusNotImplemented
	case forebay.CodeClosed, forebay.CodeFull, forebay.CodeUnavailable:
		status = http.StatusServiceUnavailable
	case forebay.CodeUnauthorized:
		status = http.StatusUnauthorized
	case forebay.CodeLimited:
		status = http.StatusTooManyRequests
	case forebay.CodeTooLarge:
		status = http.StatusRequestEntityTooLarge
	case forebay.CodeInternal:
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			status, code = http.StatusServiceUnavailable, forebay.CodeUnavailable
		}
	}
	p := newProblem(status, code, forebay.TextOf(err))
	var e *forebay.Error
	if errors.As(err, &e) {
		p.Field, p.Hint = e.Field, e.Hint
		p.Detail = strings.TrimSuffix(p.Detail, " ("+e.Field+")")
	}
	var misfits *catalog.Misfits
	if errors.As(err, &misfits) {
		for _, bad := range misfits.All {
			pointer := "/data"
			for _, key := range bad.Path {
				pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
			}
			p.Errors = append(p.Errors, Wrong{In: "body", Pointer: pointer, Message: bad.Text})
		}
	}
	return p
}

func (p *Problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	encode(w, p)
}

// encode writes JSON that people can read too. An error means that the client has
// gone, who needs no answer.
func encode(w http.ResponseWriter, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(v)
}

// asProblem turns what huma says of wrong input into our form.
func asProblem(_ huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	code := forebay.CodeInvalid
	switch {
	case e.Status == http.StatusRequestEntityTooLarge:
		code = forebay.CodeTooLarge
	case e.Status >= http.StatusInternalServerError:
		code = forebay.CodeInternal
	}
	p := newProblem(e.Status, code, e.Detail)
	for _, d := range e.Errors {
		in, pointer := pointerOf(d.Location)
		bad := Wrong{In: in, Pointer: pointer, Message: d.Message}
		if path, ok := unfit(d.Message); ok {
			bad.Pointer, bad.Message = pointer+path, "it cannot be taken here; a whole number is in digits only, and not that large"
		}
		p.Errors = append(p.Errors, bad)
	}
	return p, nil
}

// unfit gives the place of a number that passed the schema and did not fit its field, as
// the decoder of huma tells it: nobody outside knows the types that it names.
func unfit(text string) (path string, ok bool) {
	if !strings.HasPrefix(text, "json: cannot unmarshal number ") {
		return "", false
	}
	_, field, ok := strings.Cut(text, " into Go struct field ")
	if !ok {
		return "", true
	}
	field, _, _ = strings.Cut(field, " ")
	_, field, _ = strings.Cut(field, ".") // the name of the type
	return "/" + strings.ReplaceAll(field, ".", "/"), true
}

// pointerOf turns "body.items[3].tags" into "body" and "/items/3/tags".
func pointerOf(location string) (in, pointer string) {
	in, rest, _ := strings.Cut(location, ".")
	if rest == "" {
		return in, ""
	}
	rest = strings.NewReplacer("~", "~0", "/", "~1", ".", "/", "[", "/", "]", "").Replace(rest)
	return in, "/" + rest
}
