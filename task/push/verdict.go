package push

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/forebayhq/forebay"
)

// verdict says what an answer means for the job.
func verdict(r *http.Response, body []byte, now time.Time) ([]byte, error) {
	status := r.StatusCode
	if status/100 == 2 {
		return body, nil
	}
	cause := forebay.Cause{
		Code:   "http_" + strconv.Itoa(status),
		Detail: map[string]string{"status": strconv.Itoa(status), "host": r.Request.URL.Host},
	}
	text := fmt.Sprintf("%s answered %s", r.Request.URL.Host, strings.TrimSpace(strconv.Itoa(status)+" "+http.StatusText(status)))
	if status/100 == 3 {
		text += " (redirects are not followed: name the last address)"
	} else if e := excerpt(body); e != "" {
		text += ": " + e
	}
	err := forebay.Because(cause, errors.New(text))
	if lasting(status) {
		return nil, forebay.Permanent(err)
	}
	if wait, ok := retryAfter(r.Header.Get("Retry-After"), now); ok {
		return nil, forebay.RetryAfter(wait, err)
	}
	return nil, err
}

// lasting tells whether a repetition would be answered in the same way.
func lasting(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < 500
}

// retryAfter reads both forms of the header; what it asks for is bounded.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(header), 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter), true
	}
	return 0, false
}

// excerpt is the beginning of a text in one line.
func excerpt(body []byte) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(string(body), ""))
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), maxExcerpt)], "")
}

// unreached describes a call that has no answer. The address is left out of the
// text but for its host: what follows may hold a secret of the target.
func unreached(host string, err error) error {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	cause := forebay.Cause{Code: "unreachable", Detail: map[string]string{"host": host}}
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errRefused):
		cause.Code = "address_refused"
		return forebay.Permanent(forebay.Because(cause, fmt.Errorf("%s: %w", host, err)))
	case errors.Is(err, errTimeout):
		cause.Code = "timeout"
	case errors.As(err, &untrusted):
		cause.Code = "tls"
	}
	return forebay.Because(cause, fmt.Errorf("%s: %w", host, err))
}
