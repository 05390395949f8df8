package sign_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/sqsapi/sign"
)

func TestWhatIsNoSignatureIsRefusedInWords(t *testing.T) {
	t.Parallel()
	k := open(t, sign.Config{})
	good := k.signed(t, nil).header.Get("Authorization")
	scope := k.key.ID + "/20261130/eu-west-9/"
	for _, c := range []struct{ name, header, target, code string }{
		{"none", "", "/", sign.Missing},
		{"basic", "Basic dGVzdDp0ZXN0", "/", sign.Broken},
		{"sigv4a", strings.Replace(good, "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256", 1), "/", sign.Broken},
		{"version 2", "", "/?Action=ListQueues&AWSAccessKeyId=AKID&Signature=abc&SignatureVersion=2", sign.Broken},
		{"no parts", "AWS4-HMAC-SHA256", "/", sign.Broken},
		{"no signature", strings.Split(good, ", Signature")[0], "/", sign.Broken},
		{"twice", good + ", Signature=abc", "/", sign.Broken},
		{"unsorted", strings.Replace(good, "content-length;content-type", "content-type;content-length", 1), "/", sign.Broken},
		{"service", strings.Replace(good, "/sqs/", "/s3/", 1), "/", sign.Mismatch},
		{"terminator", strings.Replace(good, "aws4_request", "aws5_request", 1), "/", sign.Broken},
		{"other day", strings.Replace(good, scope, k.key.ID+"/20261129/eu-west-9/", 1), "/", sign.Mismatch},
		{"no region", strings.Replace(good, "/eu-west-9/", "//", 1), "/", sign.Broken},
		{"half a query", "", "/?X-Amz-Signature=abc", sign.Broken},
		{"long presigned", "", strings.Replace(k.presigned(t, "60").target, "X-Amz-Expires=60", "X-Amz-Expires=604801", 1), sign.Broken},
		{"presigned session", "", k.presigned(t, "60").target + "&X-Amz-Security-Token=x", sign.Unknown},
	} {
		w := k.signed(t, nil)
		w.header.Del("Authorization")
		if c.header != "" {
			w.header.Set("Authorization", c.header)
		}
		w.target = c.target
		if code := k.verify(t, w); code != c.code {
			t.Errorf("%s: %q, not %q", c.name, code, c.code)
		}
	}
	two := k.signed(t, nil)
	two.header.Add("Authorization", good)
	if code := k.verify(t, two); code != sign.Broken {
		t.Errorf("two headers give %q", code)
	}
	old := k.signed(t, nil)
	old.header.Set("X-Amz-Date", "yesterday")
	if code := k.verify(t, old); code != sign.Broken {
		t.Errorf("a date that is none gives %q", code)
	}
	if bytes.Contains([]byte(good), []byte(k.secret)) {
		t.Error("the header has the secret")
	}
}
