package sign

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Codes of a Refusal, as AWS names them.
const (
	Missing  = "MissingAuthenticationToken"
	Broken   = "IncompleteSignature"
	Unknown  = "InvalidClientTokenId"
	Mismatch = "SignatureDoesNotMatch"
	Expired  = "RequestExpired"
)

// Refusal says why a signature is not accepted.
type Refusal struct {
	Code string
	Text string
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Text }

const (
	algorithm   = "AWS4-HMAC-SHA256"
	service     = "sqs"
	terminator  = "aws4_request"
	stampFormat = "20060102T150405Z"
	maxExpires  = 7 * 24 * time.Hour
	maxSigned   = 64

	unsignedPayload = "UNSIGNED-PAYLOAD"
)

// Claim is a signature as a request brings it, not yet verified.
type Claim struct {
	keys *Keys
	r    *http.Request
	key  *entry

	id, date, region, service string // of the credential
	stamp                     string // the moment of signing, as it was signed
	signed                    []string
	signature                 string
	expires                   time.Duration // of a presigned request
	presigned                 bool
}

func presigned(r *http.Request) bool {
	return strings.Contains(r.URL.RawQuery, "X-Amz-Signature=") || strings.Contains(r.URL.RawQuery, "X-Amz-Credential=")
}

// oldSignature tells of Signature Version 2 in a URL.
func oldSignature(r *http.Request) bool {
	return strings.Contains(r.URL.RawQuery, "AWSAccessKeyId=")
}

// parse reads the signature of a request.
func parse(r *http.Request) (*Claim, *Refusal) {
	c := &Claim{r: r}
	var refused *Refusal
	switch header := r.Header["Authorization"]; {
	case len(header) > 1:
		refused = &Refusal{Broken, "there is more than one Authorization header"}
	case len(header) == 1 && header[0] != "":
		refused = c.parseHeader(header[0])
	case presigned(r):
		refused = c.parseQuery()
	case oldSignature(r):
		refused = &Refusal{Broken, "Signature Version 2 is not supported; sign with version 4"}
	default:
		refused = &Refusal{Missing, "the request is not signed, and this server needs a signature with an access key"}
	}
	if refused == nil {
		refused = c.check()
	}
	if refused != nil {
		return nil, refused
	}
	return c, nil
}

func (c *Claim) parseHeader(header string) *Refusal {
	name, rest, _ := strings.Cut(header, " ")
	if name != algorithm {
		return &Refusal{Broken, "the Authorization header must begin with " + algorithm + "; other algorithms are not supported"}
	}
	var credential, signed string
	parts := map[string]*string{"Credential": &credential, "SignedHeaders": &signed, "Signature": &c.signature}
	for part := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		to := parts[key]
		if to == nil || *to != "" || value == "" {
			return &Refusal{Broken, "the Authorization header must have Credential=, SignedHeaders= and Signature=, each once"}
		}
		*to = value
	}
	if credential == "" || signed == "" || c.signature == "" {
		return &Refusal{Broken, "the Authorization header must have Credential=, SignedHeaders= and Signature="}
	}
	dated := "x-amz-date"
	if c.stamp = c.r.Header.Get("X-Amz-Date"); c.stamp == "" {
		dated = "date"
		at, err := http.ParseTime(c.r.Header.Get("Date"))
		if err != nil {
			return &Refusal{Broken, "the request has no X-Amz-Date header, and no Date that can be read"}
		}
		c.stamp = at.UTC().Format(stampFormat)
	}
	c.signed = strings.Split(signed, ";")
	if !slices.Contains(c.signed, dated) {
		return &Refusal{Broken, "the header " + dated + " must be signed"}
	}
	return c.parseCredential(credential)
}

func (c *Claim) parseQuery() *Refusal {
	c.presigned = true
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return &Refusal{Broken, "the query of the URL cannot be read"}
	}
	for _, name := range []string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature"} {
		if len(q[name]) != 1 || q.Get(name) == "" {
			return &Refusal{Broken, "a presigned URL must have " + name + ", once"}
		}
	}
	if q.Get("X-Amz-Algorithm") != algorithm {
		return &Refusal{Broken, "X-Amz-Algorithm must be " + algorithm}
	}
	if q.Has("X-Amz-Security-Token") {
		return noSessions()
	}
	seconds, err := strconv.Atoi(q.Get("X-Amz-Expires"))
	c.expires = time.Duration(seconds) * time.Second
	if err != nil || seconds < 1 || seconds > int(maxExpires/time.Second) {
		return &Refusal{Broken, "X-Amz-Expires must be 1 to 604800 seconds"}
	}
	c.stamp, c.signature = q.Get("X-Amz-Date"), q.Get("X-Amz-Signature")
	c.signed = strings.Split(q.Get("X-Amz-SignedHeaders"), ";")
	return c.parseCredential(q.Get("X-Amz-Credential"))
}

func noSessions() *Refusal {
	return &Refusal{Unknown, "session tokens are not supported: sign with an access key of this server, which has none"}
}

func (c *Claim) parseCredential(credential string) *Refusal {
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || parts[0] == "" || parts[2] == "" {
		return &Refusal{Broken, "the Credential must be <access key id>/<date>/<region>/" + service + "/" + terminator}
	}
	c.id, c.date, c.region, c.service = parts[0], parts[1], parts[2], parts[3]
	if parts[4] != terminator {
		return &Refusal{Broken, "the Credential must end with " + terminator}
	}
	return nil
}

// check holds what has been read against the rest of the request.
func (c *Claim) check() *Refusal {
	if len(c.r.Header["X-Amz-Security-Token"]) > 0 {
		return noSessions()
	}
	if len(c.signed) > maxSigned || !slices.IsSorted(c.signed) || len(slices.Compact(slices.Clone(c.signed))) != len(c.signed) {
		return &Refusal{Broken, "SignedHeaders must be sorted, each once, and at most 64"}
	}
	for _, name := range c.signed {
		if name == "" || name != strings.ToLower(name) {
			return &Refusal{Broken, "SignedHeaders must be names in lower case, with ; between them"}
		}
		if _, there := c.header(name); !there {
			return &Refusal{Mismatch, "a header is signed, but not there: " + strconv.Quote(name)}
		}
	}
	// What decides about the request must be signed, or it could be put to another one.
	for _, name := range []string{"host", "x-amz-target", "x-amz-date", "x-amz-content-sha256"} {
		if _, there := c.header(name); there && !slices.Contains(c.signed, name) {
			return &Refusal{Mismatch, "the header " + name + " is there, but not signed"}
		}
	}
	return nil
}

// header gives a header as it is signed. Some are not where the others are.
func (c *Claim) header(name string) (string, bool) {
	switch name {
	case "host":
		return c.r.Host, true
	case "content-length":
		return strconv.FormatInt(c.r.ContentLength, 10), c.r.ContentLength >= 0
	case "transfer-encoding":
		return strings.Join(c.r.TransferEncoding, ","), len(c.r.TransferEncoding) > 0
	}
	values := c.r.Header[http.CanonicalHeaderKey(name)]
	if len(values) == 1 {
		return trim(values[0]), true
	}
	trimmed := make([]string, len(values))
	for i, v := range values {
		trimmed[i] = trim(v)
	}
	return strings.Join(trimmed, ","), len(values) > 0
}

// trim takes the blanks around a value away, and all but one within.
func trim(s string) string {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "  ") {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool { return c == ' ' }), " ")
}
