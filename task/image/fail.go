package image

import (
	"github.com/forebayhq/forebay"
)

// The codes of refusals for good, in the cause of the dead job.
const (
	codeMissing   = "source_missing"
	codeNoImage   = "not_an_image"
	codeDamaged   = "damaged_image"
	codePixels    = "too_many_pixels"
	codeTooLarge  = "too_large"
	codeMark      = "bad_watermark"
	codeProcess   = "image_process" // not for good: a process died or was killed
	codeCannotEnc = "cannot_encode"
)

// permanent refuses a job for good.
func permanent(code string, err error) error {
	return forebay.Permanent(forebay.Because(forebay.Cause{Code: code, Message: err.Error()}, err))
}

// stageError is a backend's failure. Code is empty where a repetition may help.
type stageError struct {
	Stage string `json:"stage"`
	Code  string `json:"code,omitempty"`
	Text  string `json:"text"`
}

func (e *stageError) Error() string { return "image: " + e.Stage + ": " + e.Text }

// asJobError makes of a backend's failure what steers the worker.
func (e *stageError) asJobError() error {
	if e.Code == "" {
		return forebay.Because(forebay.Cause{Code: codeProcess, Message: e.Error()}, e)
	}
	return permanent(e.Code, e)
}
