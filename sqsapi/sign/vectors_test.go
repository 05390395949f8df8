package sign

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The examples of AWS: the one of its documentation, and those of its test suite for
// Signature Version 4. All are of one secret, one moment and one region. (Those of the
// suite with escapes in the path are as for S3, which escapes once; all others twice.)
const exampleSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

var examples = []struct {
	name, service, request, signed, signature string
}{
	{
		"documentation", "iam",
		"GET /?Action=ListUsers&Version=2010-05-08 HTTP/1.1\nHost: iam.amazonaws.com\nContent-Type: application/x-www-form-urlencoded; charset=utf-8\nX-Amz-Date: 20150830T123600Z\n\n",
		"content-type;host;x-amz-date", "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
	},
	{
		"get-vanilla", "service",
		"GET / HTTP/1.1\nHost: example.amazonaws.com\nX-Amz-Date: 20150830T123600Z\n\n",
		"host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
	},
	{
		"get-vanilla-query-order-key-case", "service",
		"GET /?Param2=value2&Param1=value1 HTTP/1.1\nHost: example.amazonaws.com\nX-Amz-Date: 20150830T123600Z\n\n",
		"host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
	},
	{
		"get-header-value-trim", "service",
		"GET / HTTP/1.1\nHost: example.amazonaws.com\nMy-Header1:  value1\nMy-Header2:  \"a   b   c\"\nX-Amz-Date: 20150830T123600Z\n\n",
		"host;my-header1;my-header2;x-amz-date", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
	},
	{
		"post-vanilla", "service",
		"POST / HTTP/1.1\nHost: example.amazonaws.com\nX-Amz-Date: 20150830T123600Z\nContent-Length: 0\n\n",
		"host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
	},
	{
		"post-x-www-form-urlencoded", "service",
		"POST / HTTP/1.1\nHost: example.amazonaws.com\nContent-Type: application/x-www-form-urlencoded\nX-Amz-Date: 20150830T123600Z\nContent-Length: 13\n\nParam1=value1",
		"content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
	},
}

func TestExamplesOfAWS(t *testing.T) {
	t.Parallel()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			r, body := request(t, e.request)
			r.Header.Set("Authorization", algorithm+" Credential=AKIDEXAMPLE/20150830/us-east-1/"+e.service+"/aws4_request, SignedHeaders="+e.signed+", Signature="+e.signature)
			c, refused := parse(r)
			if refused != nil {
				t.Fatal(refused)
			}
			payload, refused := c.payload(body)
			if refused != nil {
				t.Fatal(refused)
			}
			canonical := c.canonical(r.URL.EscapedPath(), r.Host, payload)
			key := derive(exampleSecret, c.date, c.region, c.service)
			if got := hex.EncodeToString(sum(key, toSign(c.stamp, c.date, c.region, c.service, canonical))); got != e.signature {
				t.Errorf("signature %s of\n%s\nwant %s", got, canonical, e.signature)
			}
		})
	}
}

// The signing key of the documentation: of 2015-08-30, us-east-1, iam.
func TestDerivedKeyOfTheDocumentation(t *testing.T) {
	t.Parallel()
	if got := hex.EncodeToString(derive(exampleSecret, "20150830", "us-east-1", "iam")); got != "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9" {
		t.Errorf("got %s", got)
	}
}

// The paths of the suite's normalize-path and of its get-space, as they are signed.
func TestPathsAreCleaned(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/": "/", "//": "/", "/./": "/", "/./example": "/example", "/example/..": "/", "/example1/example2/../..": "/",
		"//example//": "/example/", "": "/", "/example%20space/": "/example%2520space/",
	} {
		if got := string(appendEscaped(nil, cleanPath(path), "/")); got != want {
			t.Errorf("%s is signed as %s, not as %s", path, got, want)
		}
	}
}

// A signing key is good for its own day: with that of yesterday nothing of today is
// signed, though its signature would be right.
func TestSigningKeysEndWithTheirDay(t *testing.T) {
	t.Parallel()
	k, err := Open(t.TempDir()+"/keys.json", Config{Now: func() time.Time { return time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	key, secret, err := k.Add(Spec{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for date, want := range map[string]string{"20150830": "", "20150829": Mismatch} {
		r, _ := request(t, examples[1].request)
		signed := func(signature string) {
			r.Header.Set("Authorization", algorithm+" Credential="+key.ID+"/"+date+"/us-east-1/sqs/aws4_request, SignedHeaders=host;x-amz-date, Signature="+signature)
		}
		signed("x")
		c, refused := parse(r)
		if refused != nil {
			t.Fatal(refused)
		}
		payload, _ := c.payload(nil)
		signed(hex.EncodeToString(sum(derive(secret, date, "us-east-1", "sqs"), toSign(c.stamp, date, "us-east-1", "sqs", c.canonical("/", r.Host, payload)))))
		got := ""
		if c, err := k.Begin(r); err != nil {
			got = err.(*Refusal).Code
		} else if _, err := c.Finish(nil); err != nil {
			got = err.(*Refusal).Code
		}
		if got != want {
			t.Errorf("the key of %s: %q, not %q", date, got, want)
		}
	}
}

func request(t *testing.T, text string) (*http.Request, []byte) {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n"))))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, bytes.TrimSuffix(body, []byte("\r\n"))
}
