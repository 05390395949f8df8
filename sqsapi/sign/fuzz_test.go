package sign_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/sqsapi/sign"
)

// FuzzSignature throws anything at the parser of signatures: it never panics, and
// nothing but what was signed passes.
func FuzzSignature(f *testing.F) {
	k := open(f, sign.Config{})
	w, p := k.signed(f, nil), k.presigned(f, "60")
	good := w.header.Get("Authorization")
	f.Add(good, w.target, "20261130T120000Z")
	f.Add("", p.target, "")
	f.Add(good[:len(good)-1], w.target, "20261130T120000Z")
	f.Add("AWS4-HMAC-SHA256 ,=,Credential=////,SignedHeaders=;;,Signature==", "/?X-Amz-Signature=&%zz", "\x00")
	f.Add("AWS4-HMAC-SHA256 Credential=a/20261130/b/sqs/aws4_request, SignedHeaders=host;date, Signature=0", "//..//%2f", "Mon, 30 Nov 2026 12:00:00 GMT")
	f.Fuzz(func(t *testing.T, authorization, target, date string) {
		c := w
		c.target, c.header = target, w.header.Clone()
		c.header["Authorization"], c.header["X-Amz-Date"] = []string{authorization}, []string{date}
		if date == "" {
			c.header = http.Header{}
		}
		if c.request() == nil {
			return
		}
		code := k.verify(t, c)
		signed := authorization == good && target == w.target || target == p.target
		if code == "" && !signed && !strings.Contains(target, "%") {
			t.Errorf("%q passes for %q", authorization, target)
		}
	})
}
