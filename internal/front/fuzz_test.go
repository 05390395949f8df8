package front_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

var dates = regexp.MustCompile(`(?m)^Date: .*\r$`)

// pauses of a script; none is near a time limit of either server.
var pauses = []time.Duration{0, 50 * time.Millisecond, time.Second, 10 * time.Second, 100 * time.Second}

// same fails if the front answers anything else than net/http alone.
func same(t *testing.T, do script) {
	t.Helper()
	got, want := talk(t, fronted, do), talk(t, plain, do)
	got, want = dates.ReplaceAll(got, nil), dates.ReplaceAll(want, nil)
	if !bytes.Equal(got, want) {
		t.Errorf("%q, %v, %q, half closed %v\nnet/http answers\n%q\nthe front\n%q", do.first, do.pause, do.second, do.half, want, got)
	}
}

func post(body string, fields ...string) string {
	return "POST /a HTTP/1.1\r\nHost: x.example:80\r\n" + strings.Join(append(fields, ""), "\r\n") +
		fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
}

// requests are those that the two might see differently.
func requests() []string {
	get := "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
	return []string{
		post("one"), post(""), post("one") + post("three") + post("three"), post("one", "Connection: Keep-Alive", "X: y") + post("two"),
		post("one") + get + post("two"), get + post("one"), post("one") + post(strings.Repeat("x", 9000)) + post("two"),
		post("none"), post("nothing") + post("x"), post("typed") + post("x"), post("dated") + post("x"), post("close") + post("x"),
		post("panic") + post("x"), post("large") + post("x"), post("short") + post("x"), post("long") + post("x"),
		post("unread", "Unread: yes") + post("x"), strings.Replace(post("b"), "/a", "/b", 1), strings.Replace(post("b"), "/a", "/c", 1),
		post("x", "Connection: close") + post("y"), post("x", "Expect: 100-continue") + post("y"), post("x", "Upgrade: h2c"),
		post("x", "Transfer-Encoding: chunked") + post("y"), post("0\r\n\r\n", "Transfer-Encoding: chunked") + post("y"),
		post("x", "transfer-encoding:chunked"), post("x", "Transfer-Encoding : chunked"), post("x", "X: y\r\n folded"), post("x", "X: y\nZ: z"),
		post("x", "Content-Length: 1") + "y", post("x", "Content-Length: 2") + "y", post("x", "content-length: 1"), post("x", "Host: y"),
		strings.Replace(post("x"), "Length: 1", "Length: 01", 1), strings.Replace(post("x"), "Length: 1", "Length: +1", 1),
		strings.Replace(post("x"), "Length: 1", "Length: 1 ", 1), strings.Replace(post("x"), "Length: 1", "Length:1", 1),
		strings.Replace(post("x"), "Length: 1", "Length: 0x1", 1), strings.Replace(post("x"), "Length: 1", "Length: 99999999999999999999", 1),
		strings.Replace(post("x"), "Length: 1", "Length: ", 1), strings.Replace(post("x"), "1.1", "1.0", 1), strings.Replace(post("x"), " HTTP/1.1", "", 1),
		strings.Replace(post("x"), "x.example:80", "", 1), strings.Replace(post("x"), "x.example:80", "a b", 1), strings.Replace(post("x"), "/a", "http://h/a", 1),
		strings.Replace(post("x"), "/a", "/a?q", 1), strings.Replace(post("x"), "/a", "/a/../a", 1), strings.ReplaceAll(post("x"), "\r\n", "\n"),
		post("x", "X: \x00"), post("x", "X: \xe4"), post("x", "X y: z"), post("x", ": z"), post("x", "X"), post("x", "X: "+strings.Repeat("y", 20000)),
		post("one") + "\r\n" + post("two"), post("one") + "\r\n\r\n" + post("two"), post("one") + "\r\n\r\n\n" + post("two"), post("one") + "\r\n\r\n", post("one") + "\r\n\r\nP",
		post("one") + "POS", post("one") + "\r\n\rPOS", "POST", "PUT", "\x16\x03\x01", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		post("x", "Pragma: no-cache"), post("x", "X_y: z", "A: b", "A: c"), post("x", "Te: trailers", "Trailer: X"), post("x", "Keep-Alive: timeout=5"),
		strings.TrimSuffix(post("unfinished"), "ed"), strings.TrimSuffix(post(""), "\r\n"),
	}
}

func TestAFrontAnswersAsNetHTTPAloneDoes(t *testing.T) {
	for i, r := range requests() {
		cut, half := len(r)/3, i%2 == 0
		same(t, script{first: []byte(r), half: half})
		same(t, script{[]byte(r[:cut]), []byte(r[cut:]), pauses[i%len(pauses)], !half})
	}
}

func FuzzAFrontAnswersAsNetHTTPAloneDoes(f *testing.F) {
	for i, r := range requests() {
		f.Add([]byte(r), uint16(i*7), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16, how uint8) {
		at := min(int(cut), len(data))
		pause := pauses[int(how/2)%len(pauses)]
		same(t, script{data[:at], data[at:], pause, how%2 == 0})
	})
}
