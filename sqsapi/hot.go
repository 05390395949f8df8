package sqsapi

import (
	"encoding/base64"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

// The answers that come by the thousand are written by hand: a consumer's server does
// little else. TestHotAnswersAreTheSame holds them against what the encoder writes.

// encodeHot appends an answer of that kind; false: it is another one.
func encodeHot(b []byte, out any) ([]byte, bool, error) {
	w := objects{b: b}
	switch out := out.(type) {
	case *queue.ReceiveOutput:
		w.list("Messages", len(out.Messages), func(i int) { w.message(&out.Messages[i]) })
	case *queue.HandleBatchOutput:
		if len(out.Failed) > 0 {
			return b, false, nil
		}
		w.list("Successful", len(out.Successful), func(i int) { w.text(`{"Id":`, out.Successful[i].ID) })
	case *queue.SendBatchOutput:
		if len(out.Failed) > 0 {
			return b, false, nil
		}
		w.list("Successful", len(out.Successful), func(i int) { w.sent(&out.Successful[i]) })
	default:
		return b, false, nil
	}
	return w.b, true, w.err
}

// objects writes JSON. The first error stays.
type objects struct {
	b   []byte
	err error
}

// text writes a string behind what comes before it, which is JSON.
func (w *objects) text(before, s string) {
	var err error
	if w.b, err = jsontext.AppendQuote(append(w.b, before...), s); err != nil {
		w.err = err
	}
}

// optional leaves out what is empty.
func (w *objects) optional(before, s string) {
	if s != "" {
		w.text(before, s)
	}
}

// list writes an object with one list; item writes an entry but for its closing brace.
func (w *objects) list(name string, n int, item func(i int)) {
	if n == 0 {
		w.b = append(w.b, "{}"...)
		return
	}
	w.text("{", name)
	w.b = append(w.b, ":["...)
	for i := range n {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		item(i)
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, "]}"...)
}

func (w *objects) sent(m *queue.SendOutput) {
	if m.ID == "" {
		w.text(`{"MessageId":`, m.MessageId)
	} else {
		w.text(`{"Id":`, m.ID)
		w.text(`,"MessageId":`, m.MessageId)
	}
	w.text(`,"MD5OfMessageBody":`, m.MD5OfBody)
	w.optional(`,"MD5OfMessageAttributes":`, m.MD5OfAttributes)
	w.optional(`,"MD5OfMessageSystemAttributes":`, m.MD5OfSystem)
	w.optional(`,"SequenceNumber":`, m.SequenceNumber)
}

func (w *objects) message(m *queue.Message) {
	w.text(`{"MessageId":`, m.MessageId)
	w.text(`,"ReceiptHandle":`, m.ReceiptHandle)
	w.text(`,"MD5OfBody":`, m.MD5OfBody)
	w.text(`,"Body":`, m.Body)
	before := `,"Attributes":{`
	for name, value := range m.Attributes {
		w.text(before, name)
		w.text(":", value)
		before = ","
	}
	if len(m.Attributes) > 0 {
		w.b = append(w.b, '}')
	}
	w.optional(`,"MD5OfMessageAttributes":`, m.MD5OfAttributes)
	before = `,"MessageAttributes":{`
	for name, a := range m.MessageAttributes {
		w.text(before, name)
		w.attribute(&a)
		before = ","
	}
	if len(m.MessageAttributes) > 0 {
		w.b = append(w.b, '}')
	}
}

// attribute writes a message attribute; lists of values are refused when they are sent.
func (w *objects) attribute(a *queue.Attribute) {
	w.text(`:{"DataType":`, a.DataType)
	if a.StringValue != nil {
		w.text(`,"StringValue":`, *a.StringValue)
	}
	if len(a.BinaryValue) > 0 {
		w.b = append(w.b, `,"BinaryValue":"`...)
		w.b = append(base64.StdEncoding.AppendEncode(w.b, a.BinaryValue), '"')
	}
	w.b = append(w.b, '}')
}
