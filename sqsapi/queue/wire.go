package queue

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/forebayhq/forebay"
)

// A message of SQS is a forebay.Message whose payload is the body, so that consumers
// of Forebay's own read it. What else SQS knows of it is in headers. Message attributes
// are, too, if they are small and plain; else they stand before the body, and a
// header says how long each is. The payload then has the bytes that SQS counts, and
// no more.
const (
	headAttribute = "sqs-a-"     // and the name: the type, a tab, and the value
	headFrame     = "sqs-frame"  // lengths of name, type and value of each attribute in the payload
	headTrace     = "sqs-trace"  // AWSTraceHeader
	headSender    = "sqs-sender" // access key of who sent it
	headDedup     = "sqs-dedup"  // its dedup id
	headID        = "sqs-id"     // MessageId, where the message has been moved and kept it
	headSent      = "sqs-sent"   // when it was sent first, ms, likewise
	headCount     = "sqs-count"  // how often it was received before it came to the dead letter queue
	headFrom      = "sqs-from"   // the queue from which it came to the dead letter queue
)

// maxHeaderAttributes is how many bytes of attributes go into headers. It leaves room
// for the others: none of them is longer than maxTrace.
const maxHeaderAttributes = 2000

// Attributes of Forebay's own.
const (
	ownKind     = "Forebay.Kind"     // the kind of the message, by which Forebay's workers find its handler
	ownEncoding = "Forebay.Encoding" // base64: others sent what is no text; only on receive
)

// translated adds the attributes of Forebay's own to those of a received message, and makes
// text of a body that is none.
func translated(m *forebay.Message, body []byte, attributes map[string]Attribute) ([]byte, map[string]Attribute) {
	isText := checkBytes(body) == nil
	if _, told := attributes[ownKind]; isText && (told || m.Kind == "") {
		return body, attributes
	}
	if attributes == nil {
		attributes = map[string]Attribute{}
	}
	if m.Kind != "" {
		attributes[ownKind] = Attribute{DataType: "String", StringValue: &m.Kind}
	}
	if !isText {
		base := "base64"
		attributes[ownEncoding] = Attribute{DataType: "String", StringValue: &base}
		body = base64.StdEncoding.AppendEncode(nil, body)
	}
	return body, attributes
}

// newIDs makes n UUIDs.
func newIDs(n int) []string {
	raw := make([]byte, 16*n)
	rand.Read(raw)
	ids := make([]string, n)
	for i := range ids {
		ids[i] = uuid(raw[16*i:])
	}
	return ids
}

// uuid makes a UUID of version 4 of 16 bytes.
func uuid(b []byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	var text [36]byte
	hex.Encode(text[:8], b[:4])
	hex.Encode(text[9:13], b[4:6])
	hex.Encode(text[14:18], b[6:8])
	hex.Encode(text[19:23], b[8:10])
	hex.Encode(text[24:], b[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

func header(m *forebay.Message, name, value string) {
	if m.Headers == nil {
		m.Headers = map[string]string{}
	}
	m.Headers[name] = value
}

// pack puts body and attributes into a message.
func pack(m *forebay.Message, body string, attributes map[string]Attribute) {
	if len(attributes) == 0 {
		m.Payload = []byte(body)
		return
	}
	if asHeaders(m, attributes) {
		m.Payload = []byte(body)
		return
	}
	var lengths []string
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		value := a.BinaryValue
		if !isBinary(a.DataType) {
			value = []byte(*a.StringValue)
		}
		m.Payload = append(append(append(m.Payload, name...), a.DataType...), value...)
		lengths = append(lengths, strconv.Itoa(len(name))+","+strconv.Itoa(len(a.DataType))+","+strconv.Itoa(len(value)))
	}
	m.Payload = append(m.Payload, body...)
	header(m, headFrame, strings.Join(lengths, ";"))
}

func asHeaders(m *forebay.Message, attributes map[string]Attribute) bool {
	size := 0
	heads := make(map[string]string, len(attributes)+len(m.Headers))
	for name, a := range attributes {
		value := base64.StdEncoding.EncodeToString
		text := ""
		if isBinary(a.DataType) {
			text = value(a.BinaryValue)
		} else if text = *a.StringValue; !plain(text) {
			return false
		}
		if size += len(headAttribute) + len(name) + len(a.DataType) + 1 + len(text); size > maxHeaderAttributes {
			return false
		}
		heads[headAttribute+name] = a.DataType + "\t" + text
	}
	maps.Copy(heads, m.Headers)
	m.Headers = heads
	return true
}

// unpack gives the body and the attributes of a message. What is no frame is body.
func unpack(m *forebay.Message) (body []byte, attributes map[string]Attribute) {
	add := func(name string, a Attribute) {
		if attributes == nil {
			attributes = map[string]Attribute{}
		}
		attributes[name] = a
	}
	for head, value := range m.Headers {
		if name, is := strings.CutPrefix(head, headAttribute); is {
			if a, ok := fromHeader(value); ok {
				add(name, a)
			}
		}
	}
	frame := m.Headers[headFrame]
	if frame == "" {
		return m.Payload, attributes
	}
	rest := m.Payload
	for lengths := range strings.SplitSeq(frame, ";") {
		name, dataType, value, after, ok := cutFrame(rest, lengths)
		if !ok {
			return m.Payload, attributes
		}
		rest = after
		if isBinary(dataType) {
			add(name, Attribute{DataType: dataType, BinaryValue: value})
			continue
		}
		text := string(value)
		add(name, Attribute{DataType: dataType, StringValue: &text})
	}
	return rest, attributes
}

func fromHeader(value string) (Attribute, bool) {
	dataType, text, ok := strings.Cut(value, "\t")
	if !ok || !isBinary(dataType) {
		return Attribute{DataType: dataType, StringValue: &text}, ok
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	return Attribute{DataType: dataType, BinaryValue: raw}, err == nil
}

// cutFrame cuts one attribute off a payload.
func cutFrame(b []byte, lengths string) (name, dataType string, value, rest []byte, ok bool) {
	var parts [3][]byte
	for i := range parts {
		var text string
		if text, lengths, _ = strings.Cut(lengths, ","); text == "" {
			return
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > len(b) {
			return
		}
		parts[i], b = b[:n], b[n:]
	}
	return string(parts[0]), string(parts[1]), parts[2], b, true
}
