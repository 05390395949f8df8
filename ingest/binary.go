package ingest

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// CloudEvents in binary mode have their attributes in headers and their data as
// the body. They are written in the JSON form and then go the way of all others.

func isBinaryCloud(h http.Header) bool { return len(h["Ce-Specversion"]) > 0 }

func (c *call) cutBinaryCloud() *problem {
	data, contentType := c.wire, c.r.Header.Get("Content-Type")
	if isJSONType(contentType) || c.r.Header.Get("Content-Encoding") != "" {
		var p *problem
		if data, p = c.decode(); p != nil {
			return p
		}
	}
	// The JSON form is at most six times the data (a text of control characters).
	if !c.take(int64(6*len(data)) + MaxHeaderBytes) {
		return outOfMemory()
	}
	whole := appendCloud(nil, c.r.Header, contentType, data)
	var f facts
	f.scanValue(whole, 0)
	c.items = append(c.items[:0], framed{whole, f})
	c.single, c.env = true, envelope{}
	return nil
}

func appendCloud(b []byte, h http.Header, contentType string, data []byte) []byte {
	b = append(b, '{')
	names := make([]string, 0, 8)
	for name := range h {
		if strings.HasPrefix(name, "Ce-") && len(name) > len("Ce-") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b = append(quote(b, strings.ToLower(name[len("Ce-"):])), ':')
		b = append(quote(b, plainHeader(h.Get(name))), ',')
	}
	if contentType != "" {
		b = append(quote(append(b, `"datacontenttype":`...), contentType), ',')
	}
	b = appendData(b, contentType, data)
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, '}')
}

// appendData writes the data as JSON where it says that it is, or says nothing and
// is; text as a string; anything else in base64.
func appendData(b []byte, contentType string, data []byte) []byte {
	data = bytes.TrimPrefix(data, byteOrderMark)
	var f facts
	switch {
	case len(data) == 0:
		return b
	case isJSONType(contentType) && f.scanValue(data, skipSpace(data, 0)) > 0 && jsontext.Value(data).IsValid():
		return append(append(b, `"data":`...), trimSpace(data)...)
	case (strings.HasPrefix(contentType, "text/") || isJSONType(contentType)) && utf8.Valid(data):
		return quote(append(b, `"data":`...), string(data))
	}
	b = append(b, `"data_base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}

// isJSONType tells whether data is JSON; the specification says that data of no
// stated type is.
func isJSONType(t string) bool {
	t, _, _ = strings.Cut(t, ";")
	t = strings.ToLower(strings.TrimSpace(t))
	return t == "" || t == "application/json" || t == "text/json" || strings.HasSuffix(t, "+json")
}

// plainHeader undoes the percent-encoding that the HTTP binding prescribes.
func plainHeader(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	plain, err := url.PathUnescape(s)
	if err != nil || !utf8.ValidString(plain) {
		return s
	}
	return plain
}
