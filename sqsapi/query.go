package sqsapi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a form: a full batch has about 600 parameters.
const (
	maxParameters = 5000
	maxNesting    = 8 // of SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.BinaryListValue.1: 7
)

// queryProtocol is the older protocol: a form, answered with XML.
type queryProtocol struct{ form node }

func (p *queryProtocol) contentType() string { return "text/xml" }

// node is a parameter, or those whose names begin with its name and a dot.
type node struct {
	value string
	set   bool
	kids  map[string]*node
}

func (p *queryProtocol) name(r *http.Request, body []byte) (string, error) {
	count := 0
	if err := p.form.add(r.URL.RawQuery, &count); err != nil {
		return "", err
	}
	kind := r.Header.Get("Content-Type")
	if kind == "" || strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
		if err := p.form.add(string(body), &count); err != nil {
			return "", err
		}
	}
	action := p.form.kids["Action"]
	if action == nil || action.value == "" {
		return "", fault("MissingAction", "The request must contain the parameter Action (of a form), or the header %s.", targetHeader)
	}
	return action.value, nil
}

// add takes in a form. Of parameters with one name the first counts.
func (n *node) add(form string, count *int) error {
	for form != "" {
		var pair string
		pair, form, _ = strings.Cut(form, "&")
		if pair == "" {
			continue
		}
		if *count++; *count > maxParameters {
			return fault("MalformedQueryString", "The request has more than %d parameters.", maxParameters)
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			return fault("MalformedQueryString", "The name of a parameter is not encoded as it should be: %s.", printable(rawName))
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return fault("MalformedQueryString", "The value of %s is not encoded as it should be.", printable(name))
		}
		n.put(name, value)
	}
	return nil
}

func (n *node) put(name, value string) {
	if strings.Count(name, ".") >= maxNesting {
		return // no action knows it
	}
	for part := range strings.SplitSeq(name, ".") {
		kid := n.kids[part]
		if kid == nil {
			kid = &node{}
			if n.kids == nil {
				n.kids = map[string]*node{}
			}
			n.kids[part] = kid
		}
		n = kid
	}
	if !n.set {
		n.value, n.set = value, true
	}
}

// items gives what a flat list holds, in the order of its numbers. A single item may
// stand without a number, as in examples of old.
func (n *node) items() []*node {
	type numbered struct {
		at int
		*node
	}
	var all []numbered
	for part, kid := range n.kids {
		if at, err := strconv.Atoi(part); err == nil {
			all = append(all, numbered{at, kid})
		}
	}
	if len(all) == 0 {
		return []*node{n}
	}
	slices.SortFunc(all, func(a, b numbered) int { return a.at - b.at })
	items := make([]*node, len(all))
	for i, item := range all {
		items[i] = item.node
	}
	return items
}

func (p *queryProtocol) decode(a *action, in any) error {
	form := p.form
	p.form = node{} // not held while a receive waits
	return form.decode(a.in, reflect.ValueOf(in).Elem(), "")
}

// decode fills v; at is the name of the parameter, for errors.
func (n *node) decode(s *shape, v reflect.Value, at string) error {
	if s.pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch s.kind {
	case structShape:
		for _, f := range s.fields {
			kid := n.kids[f.name]
			if kid == nil {
				continue
			}
			if err := kid.decode(f.shape, v.Field(f.index), strings.TrimPrefix(at+"."+f.name, ".")); err != nil {
				return err
			}
		}
		return nil
	case listShape:
		items := n.items()
		list := reflect.MakeSlice(v.Type(), len(items), len(items))
		for i, item := range items {
			if err := item.decode(s.item, list.Index(i), at); err != nil {
				return err
			}
		}
		v.Set(list)
		return nil
	case mapShape:
		return n.decodeMap(s, v, at)
	}
	return n.decodeValue(s, v, at)
}

func (n *node) decodeMap(s *shape, v reflect.Value, at string) error {
	pairs := reflect.MakeMap(v.Type())
	for _, item := range n.items() {
		key := item.kids[s.key]
		if key == nil || !key.set {
			return fault("MissingRequiredParameterException", "The request must contain the parameter %s.N.%s.", at, s.key)
		}
		if !utf8.ValidString(key.value) {
			return fault("InvalidParameterValueException", "The parameter %s.N.%s is not UTF-8.", at, s.key)
		}
		value := reflect.New(v.Type().Elem()).Elem()
		if kid := item.kids[s.value]; kid != nil {
			if err := kid.decode(s.item, value, at+"."+s.value); err != nil {
				return err
			}
		}
		pairs.SetMapIndex(reflect.ValueOf(key.value), value)
	}
	v.Set(pairs)
	return nil
}

func (n *node) decodeValue(s *shape, v reflect.Value, at string) error {
	wrong := func(must string) error {
		return fault("InvalidParameterValueException", "Value %s for parameter %s is invalid. Reason: Must be %s.", printable(n.value), at, must)
	}
	switch s.kind {
	case textShape:
		if !utf8.ValidString(n.value) {
			return wrong("UTF-8")
		}
		v.SetString(n.value)
	case bytesShape:
		b, err := base64.StdEncoding.DecodeString(n.value)
		if err != nil {
			return wrong("base64")
		}
		v.SetBytes(b)
	case numberShape:
		i, err := strconv.ParseInt(n.value, 10, v.Type().Bits())
		if err != nil {
			return wrong("an integer")
		}
		v.SetInt(i)
	case flagShape:
		b, err := strconv.ParseBool(n.value)
		if err != nil {
			return wrong("true or false")
		}
		v.SetBool(b)
	}
	return nil
}
