package sqsapi

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

const (
	targetHeader = "X-Amz-Target"
	targetPrefix = "AmazonSQS."
)

// protocolOf tells how a request speaks: the header names the action in the JSON
// protocol only.
func protocolOf(r *http.Request) protocol {
	if r.Header.Get(targetHeader) != "" || strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json") {
		return &jsonProtocol{}
	}
	return &queryProtocol{}
}

// jsonProtocol is AWS JSON 1.0, with the headers for clients that once spoke Query.
type jsonProtocol struct{ body []byte }

func (p *jsonProtocol) contentType() string { return "application/x-amz-json-1.0" }

func (p *jsonProtocol) name(r *http.Request, body []byte) (string, error) {
	p.body = body
	target := r.Header.Get(targetHeader)
	name, found := strings.CutPrefix(target, targetPrefix)
	if !found {
		return "", fault("InvalidAction", "The header %s must be %s and an action; it is %s.", targetHeader, targetPrefix, printable(target))
	}
	return name, nil
}

func (p *jsonProtocol) decode(_ *action, in any) error {
	defer func() { p.body = nil }()
	if len(bytes.TrimSpace(p.body)) == 0 {
		return nil
	}
	err := json.Unmarshal(p.body, in) // members of a newer model are passed over
	if err == nil {
		return nil
	}
	var wrong *json.SemanticError
	if errors.As(err, &wrong) && wrong.GoType != nil {
		return fault("SerializationException", "%s can not be converted to %s (at %s).",
			kindName(wrong.JSONKind), typeName(wrong.GoType), printable(string(wrong.JSONPointer)))
	}
	var broken *jsontext.SyntacticError
	if errors.As(err, &broken) {
		return fault("SerializationException", "The body is not JSON as it should be: %s (at byte %d).", broken.Err, broken.ByteOffset)
	}
	return fault("SerializationException", "The body is not a JSON object with what the action takes.")
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "STRING_VALUE"
	case '0':
		return "NUMBER_VALUE"
	case 't', 'f':
		return "BOOLEAN_VALUE"
	case '{':
		return "START_OBJECT"
	case '[':
		return "START_ARRAY"
	}
	return "VALUE"
}

// The shapes say omitempty of numbers too.
var writing = jsonv1.OmitEmptyWithLegacySemantics(true)

func (p *jsonProtocol) encode(b []byte, _ *action, out any, _ string) ([]byte, error) {
	if out == nil {
		return append(b, "{}"...), nil
	}
	if b, hot, err := encodeHot(b, out); hot {
		return b, err
	}
	return encodeCold(b, out)
}

func encodeCold(b []byte, out any) ([]byte, error) {
	w := bytes.NewBuffer(b)
	err := json.MarshalWrite(w, out, writing)
	return w.Bytes(), err
}

func (p *jsonProtocol) refuse(b []byte, f *queue.Fault, _ string) []byte {
	b, err := p.encode(b, nil, struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}{"com.amazonaws.sqs#" + f.Shape, f.Message}, "")
	if err != nil { // not with two strings
		return append(b[:0], "{}"...)
	}
	return b
}
