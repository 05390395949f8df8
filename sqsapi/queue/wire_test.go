package queue

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// FuzzUnpack: what strangers put into headers and payload never breaks a receive.
func FuzzUnpack(f *testing.F) {
	f.Add("1,6,1", "nStringv", "String\tx", []byte("nStringvbody"))
	f.Add("1,6,1;", ",,", "", []byte(""))
	f.Add("-1,6,99999999999999999999", "", "Binary\t!", []byte("x"))
	f.Fuzz(func(t *testing.T, frame, name, value string, payload []byte) {
		m := forebay.Message{Payload: payload, Headers: map[string]string{headFrame: frame, headAttribute + name: value}}
		body, attributes := unpack(&m)
		if !bytes.HasSuffix(payload, body) {
			t.Errorf("the body %q is not the end of %q", body, payload)
		}
		attributesMD5(attributes)
	})
}

// FuzzPack: what was packed is unpacked, and is what an engine takes.
func FuzzPack(f *testing.F) {
	f.Add("body", "Name", "String", "value", []byte("x"))
	f.Add("body", "N", "Number.x", "1\n", []byte{0})
	f.Fuzz(func(t *testing.T, body, name, kind, value string, raw []byte) {
		in := map[string]Attribute{name: {DataType: kind, StringValue: &value}, "raw": {DataType: "Binary", BinaryValue: raw}}
		if isBinary(kind) {
			in[name] = Attribute{DataType: kind, BinaryValue: []byte(value)}
		}
		if _, err := checkAttributes(in); err != nil || checkText(body) != nil {
			return
		}
		m := forebay.Message{ID: "1", Queue: "a"}
		pack(&m, body, in)
		if err := engine.CheckMessage(&m, time.Now()); err != nil {
			t.Fatalf("the engine refuses it: %v", err)
		}
		out, attributes := unpack(&m)
		if string(out) != body || attributesMD5(attributes) != attributesMD5(in) || !maps.EqualFunc(in, attributes, func(a, b Attribute) bool { return a.DataType == b.DataType }) {
			t.Errorf("packed %q %v, got %q %v", body, in, out, attributes)
		}
	})
}

// FuzzHandle: no handle that was not given is taken.
func FuzzHandle(f *testing.F) {
	s := &Service{key: []byte("key")}
	g := s.newSigner("life")
	good := g.handle("1.2.3", time.UnixMilli(1_700_000_000_000))
	f.Add(good)
	f.Add(good + "A")
	f.Add("")
	f.Fuzz(func(t *testing.T, handle string) {
		if r, at, err := g.receipt(handle); err == nil && (handle != good || r != "1.2.3" || at.UnixMilli() != 1_700_000_000_000) {
			t.Errorf("%q is taken for %q", handle, r)
		}
		if _, _, err := s.newSigner("other").receipt(handle); err == nil {
			t.Errorf("%q is taken by another queue", handle)
		}
	})
}

func TestNumbersAndStamps(t *testing.T) {
	at := time.UnixMilli(1_764_000_000_123)
	id := stamp(newIDs(1)[0], at)
	if is, ok := stamped(id); !ok || !is.Equal(at) || len(id) != 36 || id[14] != '7' {
		t.Errorf("%s tells %s", id, is)
	}
	if sequence(9) >= sequence(10) || len(sequence(1<<62)) != numberDigits {
		t.Errorf("%s, %s", sequence(9), sequence(10))
	}
	if a, n := splitID(numbered("x.y", 7)); a != "x.y" || n != sequence(7) {
		t.Errorf("%s, %s", a, n)
	}
	for _, id := range []string{"", "x", ".12345678901234567890", "a.1234567890123456789x", "a-12345678901234567890"} {
		if a, n := splitID(id); a != id || n != "" {
			t.Errorf("%q tells %q, %q", id, a, n)
		}
	}
}
