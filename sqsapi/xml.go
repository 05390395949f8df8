package sqsapi

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"reflect"
	"slices"
	"strconv"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

const namespace = "http://queue.amazonaws.com/doc/2012-11-05/"

func (p *queryProtocol) encode(b []byte, a *action, out any, id string) ([]byte, error) {
	w := &xmlWriter{*bytes.NewBuffer(b)}
	w.WriteString(xml.Header)
	w.WriteString("<" + a.name + `Response xmlns="` + namespace + `">`)
	if out != nil {
		w.value(a.out, reflect.ValueOf(out).Elem(), a.name+"Result")
	}
	w.WriteString("<ResponseMetadata>")
	w.text("RequestId", id)
	w.WriteString("</ResponseMetadata></" + a.name + "Response>")
	return w.Bytes(), nil
}

func (p *queryProtocol) refuse(b []byte, f *queue.Fault, id string) []byte {
	code, _, sender := f.Describe()
	side := "Sender"
	if !sender {
		side = "Receiver"
	}
	w := &xmlWriter{*bytes.NewBuffer(b)}
	w.WriteString(xml.Header)
	w.WriteString(`<ErrorResponse xmlns="` + namespace + `"><Error>`)
	w.text("Type", side)
	w.text("Code", code)
	w.text("Message", f.Message)
	w.WriteString("<Detail/></Error>")
	w.text("RequestId", id)
	w.WriteString("</ErrorResponse>")
	return w.Bytes()
}

// xmlWriter writes elements. Carriage returns, quotes and the like are written as
// numbers, since a parser would change them; what XML cannot hold becomes U+FFFD.
type xmlWriter struct{ bytes.Buffer }

func (w *xmlWriter) text(name, s string) {
	w.WriteString("<" + name + ">")
	xml.EscapeText(w, []byte(s)) // a buffer gives no error
	w.WriteString("</" + name + ">")
}

// value writes v as the element, or the elements, of that name.
func (w *xmlWriter) value(s *shape, v reflect.Value, name string) {
	if s.pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch s.kind {
	case textShape:
		w.text(name, v.String())
	case bytesShape:
		w.text(name, base64.StdEncoding.EncodeToString(v.Bytes()))
	case numberShape:
		w.text(name, strconv.FormatInt(v.Int(), 10))
	case flagShape:
		w.text(name, strconv.FormatBool(v.Bool()))
	case listShape:
		for i := range v.Len() {
			w.value(s.item, v.Index(i), name)
		}
	case mapShape:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
		for _, key := range keys {
			w.WriteString("<" + name + ">")
			w.text(s.key, key.String())
			w.value(s.item, v.MapIndex(key), s.value)
			w.WriteString("</" + name + ">")
		}
	case structShape:
		w.WriteString("<" + name + ">")
		for _, f := range s.fields {
			if field := v.Field(f.index); !f.optional || !field.IsZero() {
				w.value(f.shape, field, f.name)
			}
		}
		w.WriteString("</" + name + ">")
	}
}
