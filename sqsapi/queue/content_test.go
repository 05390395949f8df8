package queue_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

func TestMessageAttributes(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		raw := []byte{0, 1, 2, 0xff}
		number, long := "-12.5e3", strings.Repeat("ä\n", 3000)
		for name, all := range map[string]map[string]queue.Attribute{
			"plain":   {"Hello": {DataType: "String", StringValue: new("There")}, "n": {DataType: "Number.int", StringValue: &number}},
			"binary":  {"b": {DataType: "Binary.x", BinaryValue: raw}, "s": {DataType: "String", StringValue: new("x")}},
			"framed":  {"long": {DataType: "String.text", StringValue: &long}, "b": {DataType: "Binary", BinaryValue: raw}, "c": {DataType: "Number", StringValue: &number}},
			"newline": {"x": {DataType: "String", StringValue: new("a\nb")}},
			"tab":     {"x": {DataType: "String", StringValue: new("a\tb\tc")}},
		} {
			sent := v.send(q, "body of "+name, func(in *queue.SendInput) { in.MessageAttributes = all })
			m := v.one(q, "body of "+name)
			if m.MD5OfAttributes != sent.MD5OfAttributes || m.MD5OfBody != sent.MD5OfBody {
				t.Errorf("%s: sent %+v, received %+v", name, sent, m)
			}
			if !maps.EqualFunc(m.MessageAttributes, all, func(a, b queue.Attribute) bool {
				return a.DataType == b.DataType && bytes.Equal(a.BinaryValue, b.BinaryValue) &&
					(a.StringValue == nil) == (b.StringValue == nil) && (a.StringValue == nil || *a.StringValue == *b.StringValue)
			}) {
				t.Errorf("%s: received %v", name, m.MessageAttributes)
			}
		}
	})
}

// The digests are those that AWS was recorded to give.
func TestAttributeDigests(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		sent := v.send(q, "msg", text("Hello", "There"), text("General", "Kenobi"), text("Help.Me", "Me"))
		if sent.MD5OfAttributes != "4c360f3fdafd970e05fae2f149d997f5" {
			t.Errorf("three texts: %s", sent.MD5OfAttributes)
		}
		m := v.one(q, "msg")
		for names, want := range map[string]string{
			"All": "4c360f3fdafd970e05fae2f149d997f5", ".*": "4c360f3fdafd970e05fae2f149d997f5", "*": "4c360f3fdafd970e05fae2f149d997f5",
			"Hello,General": "fca026605781cb4126a1e9044df24232", "Hello,Foo": "a311262e065454b75da111d535b8dacd",
			"Hel.*": "83fee93c1bcd8b9a5a923ffacdc636c7", "Foo": "", "": "", "AWS.": "",
		} {
			v.fine(v.hide(q, m, 0))
			m = v.one(q, "msg", func(in *queue.ReceiveInput) { in.MessageAttributeNames = strings.Split(names, ",") })
			if m.MD5OfAttributes != want || (len(m.MessageAttributes) > 0) != (want != "") {
				t.Errorf("%q: %s of %v, want %s", names, m.MD5OfAttributes, m.MessageAttributes, want)
			}
		}
		raw := []byte("traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01")
		sent = v.send(q, "test", with("attr1", queue.Attribute{DataType: "Binary", BinaryValue: raw}))
		if sent.MD5OfAttributes != "8cbe4db156db8a94db8b801b7addb984" {
			t.Errorf("binary: %s", sent.MD5OfAttributes)
		}
	})
}

func TestAttributesThatAreRefused(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		x := "x"
		for name, a := range map[string]queue.Attribute{
			"AWS.x": {DataType: "String", StringValue: &x}, "amazon.x": {DataType: "String", StringValue: &x},
			".x": {DataType: "String", StringValue: &x}, "x.": {DataType: "String", StringValue: &x}, "x..y": {DataType: "String", StringValue: &x},
			"x y": {DataType: "String", StringValue: &x}, "": {DataType: "String", StringValue: &x}, strings.Repeat("n", 257): {DataType: "String", StringValue: &x},
			"none": {StringValue: &x}, "kind": {DataType: "Text", StringValue: &x}, "label": {DataType: "String.", StringValue: &x},
			"number": {DataType: "Number", StringValue: &x}, "hex": {DataType: "Number", StringValue: new("0x1p4")}, "nan": {DataType: "Number", StringValue: new("NaN")},
			"binary": {DataType: "Binary", StringValue: &x}, "empty": {DataType: "Binary"}, "text": {DataType: "String", BinaryValue: []byte("x")},
			"control": {DataType: "String", StringValue: new("\x00")},
		} {
			_, err := v.trySend(q, "x", with(name, a))
			if f, is := err.(*queue.Fault); !is || f.Shape != "InvalidParameterValueException" {
				t.Errorf("%q %+v: got %v", name, a, err)
			}
		}
		_, err := v.trySend(q, "x", with("list", queue.Attribute{DataType: "String", StringListValues: []string{"x"}}))
		v.refused(err, "UnsupportedOperation")
		many := func(in *queue.SendInput) {
			for _, c := range "abcdefghijk" {
				text(string(c), "x")(in)
			}
		}
		_, err = v.trySend(q, "x", many)
		v.refused(err, "InvalidParameterValueException")
		_, err = v.trySend(q, "x", func(in *queue.SendInput) {
			in.SystemAttributes = map[string]queue.Attribute{"SenderId": {DataType: "String", StringValue: &x}}
		})
		v.refused(err, "InvalidParameterValueException")
	})
}

func TestCharactersOfABody(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		for _, bad := range []string{"a\x00", "\x1f", "\ufffe", "\uffff", "a\xff", "\xed\xa0\x80"} {
			_, err := v.trySend(q, bad)
			v.refused(err, "InvalidMessageContents")
		}
		for _, good := range []string{"\t\r\n", "\x7f\u0085", "\ud7ff\ue000\ufffd", "\U00010000\U0010ffff", " "} {
			v.send(q, good)
			m := v.one(q, good)
			v.fine(v.remove(q, m))
		}
	})
}

// One MiB of body and attributes fits, however much of it is which; one byte more
// does not.
func TestReport05OneMiB(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		const most = 1 << 20
		v.send(q, strings.Repeat("x", most))
		m := v.receive(q)[0]
		v.fine(v.remove(q, m))
		fill := func(in *queue.SendInput) {
			for _, c := range "abcdefghij" {
				text(strings.Repeat(string(c), 250), strings.Repeat("ä", 1000))(in)
			}
		}
		size := 10 * (250 + len("String") + 2000)
		sent := v.send(q, strings.Repeat("x", most-size), fill)
		m = v.receive(q)[0]
		if len(m.Body) != most-size || m.MD5OfAttributes != sent.MD5OfAttributes || len(m.MessageAttributes) != 10 {
			t.Errorf("received %d bytes and %d attributes", len(m.Body), len(m.MessageAttributes))
		}
		_, err := v.trySend(q, strings.Repeat("x", most-size+1), fill)
		if f := v.refused(err, "InvalidParameterValueException"); !strings.Contains(f.Message, "shorter than 1048576 bytes") {
			t.Errorf("says %q", f.Message)
		}
	})
}
