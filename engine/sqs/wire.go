package sqs

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// How a message looks on SQS. The body is the payload where that is text that SQS
// takes, so that consumers of any kind read it. Attributes tell the rest; a message
// without them is a foreign one, and is received as it is.
const (
	attrID       = "forebay.id"
	attrKind     = "forebay.kind"
	attrEncoding = "forebay.encoding" // of the body; none: as it is
	attrHeaders  = "forebay.headers"  // JSON
	attrMore     = "forebay.more"     // JSON: more
	attrCause    = "forebay.cause"    // JSON, of a dead letter

	encodingBase64 = "base64"
	encodingEmpty  = "empty" // SQS takes no empty body
)

// more is what few messages have, and what SQS cannot carry as it is.
type more struct {
	ID         string        `json:"id,omitempty"`
	Kind       string        `json:"kind,omitempty"`
	Group      string        `json:"group,omitempty"`
	DedupKey   string        `json:"dedupKey,omitempty"`
	Window     time.Duration `json:"dedupWindow,omitempty"`
	LimitKey   string        `json:"limitKey,omitempty"`
	Attempts   int           `json:"attempts,omitempty"`
	Deliveries int           `json:"deliveries,omitempty"`
}

func unsupported(field, format string, args ...any) *forebay.Error {
	e := forebay.Errorf(forebay.CodeUnsupported, "sqs", format, args...)
	e.Field = field
	return e
}

// refuse finds what SQS cannot do for a message.
func (q *queue) refuse(m *forebay.Message, delay time.Duration) error {
	switch {
	case m.Job != nil:
		return unsupported("job", "SQS keeps no ledger, so it cannot track jobs")
	case m.Priority.Level() != forebay.Priority(0).Level():
		return unsupported("priority", "SQS has no priorities")
	case m.DedupKey != "" && m.DedupKey != m.ID && !q.fifo:
		return unsupported("dedupKey", "a standard queue of SQS does not join messages; a .fifo queue does, for five minutes")
	case delay > 0 && q.fifo:
		return unsupported("notBefore", "a FIFO queue of SQS cannot delay a message")
	case delay > maxDelay:
		return unsupported("notBefore", "SQS delays a message by 15 minutes at most")
	}
	return nil
}

const maxDelay = 15 * time.Minute

// encode makes what is sent.
func (q *queue) encode(m *forebay.Message, now time.Time) (types.SendMessageBatchRequestEntry, int, error) {
	var out types.SendMessageBatchRequestEntry
	delay := time.Duration(0)
	if !m.NotBefore.IsZero() {
		delay = max(0, m.NotBefore.Sub(now))
	}
	if err := q.refuse(m, delay); err != nil {
		return out, 0, err
	}
	attributes := make(map[string]types.MessageAttributeValue, 4)
	body, encoding := encodeBody(m.Payload)
	rest := more{Window: m.DedupWindow, LimitKey: m.LimitKey, Attempts: m.Limits.Attempts, Deliveries: m.Limits.Deliveries}
	setOr(attributes, attrID, m.ID, &rest.ID)
	setOr(attributes, attrKind, m.Kind, &rest.Kind)
	set(attributes, attrEncoding, encoding)
	if len(m.Headers) > 0 {
		set(attributes, attrHeaders, asJSON(m.Headers))
	}
	out.MessageBody, out.MessageAttributes, out.DelaySeconds = &body, attributes, int32(seconds(delay))
	q.route(m, &out, &rest)
	if rest != (more{}) {
		set(attributes, attrMore, asJSON(rest))
	}
	size := sizeOf(body, attributes)
	if size > maxBytes {
		err := forebay.Errorf(forebay.CodeTooLarge, "sqs",
			"the message takes %d bytes on SQS; at most %d are allowed, names and kinds included, and bytes that are no text take a third more", size, maxBytes)
		err.Field = "payload"
		return out, 0, err
	}
	return out, size, nil
}

// route sets what SQS orders and joins by.
func (q *queue) route(m *forebay.Message, out *types.SendMessageBatchRequestEntry, rest *more) {
	group := m.Group
	if q.fifo && group == "" {
		group = m.ID
	}
	if group != "" {
		name := plainID(group)
		out.MessageGroupId = &name
		if m.Group != "" && (name != m.Group || m.Group == m.ID) {
			rest.Group = m.Group // else a group of this name says that it was sent without one
		}
	}
	rest.DedupKey = m.DedupKey
	if q.fifo {
		key := m.DedupKey
		if key == "" {
			key = m.ID
		}
		if again := m.Headers[engine.HeaderReplayed]; again != "" {
			key += "/" + again
		}
		key = plainID(key)
		out.MessageDeduplicationId = &key
	}
}

// plainID is s where SQS takes it as a group or dedup id, else a hash of it.
func plainID(s string) string {
	ok := len(s) <= 128
	for i := 0; i < len(s) && ok; i++ {
		ok = '!' <= s[i] && s[i] <= '~'
	}
	if ok {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + hex.EncodeToString(sum[:])
}

func encodeBody(payload []byte) (body, encoding string) {
	switch {
	case len(payload) == 0:
		return "-", encodingEmpty
	case allowed(payload):
		return string(payload), ""
	}
	return base64.StdEncoding.EncodeToString(payload), encodingBase64
}

// allowed tells whether SQS takes the bytes as text.
func allowed[T string | []byte](s T) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
		if r == utf8.RuneError && n == 1 || r == 0xFFFE || r == 0xFFFF {
			return false
		}
		i += n
	}
	return true
}

func set(attributes map[string]types.MessageAttributeValue, name, value string) {
	if value != "" {
		attributes[name] = types.MessageAttributeValue{DataType: new("String"), StringValue: &value}
	}
}

// setOr puts a value that SQS does not take elsewhere.
func setOr(attributes map[string]types.MessageAttributeValue, name, value string, elsewhere *string) {
	if allowed(value) {
		set(attributes, name, value)
	} else {
		*elsewhere = value
	}
}

// asJSON writes JSON in characters that SQS takes.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("BUG: sqs: %T is no JSON: %v", v, err))
	}
	return strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`).Replace(string(text))
}

// sizeOf counts as SQS does: the body, and names, types and values of attributes.
func sizeOf(body string, attributes map[string]types.MessageAttributeValue) int {
	n := len(body)
	for name, a := range attributes {
		n += len(name) + len(deref(a.DataType)) + len(deref(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}

// seconds rounds up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// decode reads what was received. What does not read as ours is handed out as it is.
func (q *queue) decode(raw *types.Message) forebay.Message {
	body := deref(raw.Body)
	m := forebay.Message{
		Queue: q.name, ID: q.text(raw, attrID), Kind: q.text(raw, attrKind), Payload: []byte(body),
		Group: raw.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
	}
	var rest more
	if text := q.text(raw, attrMore); text != "" && json.Unmarshal([]byte(text), &rest) == nil {
		m.ID, m.Kind, m.Group = first(rest.ID, m.ID), first(rest.Kind, m.Kind), first(rest.Group, m.Group)
		m.DedupKey, m.DedupWindow, m.LimitKey = rest.DedupKey, rest.Window, rest.LimitKey
		m.Limits = forebay.Limits{Attempts: rest.Attempts, Deliveries: rest.Deliveries}
	}
	if m.ID == "" {
		m.ID = deref(raw.MessageId)
		q.foreign(&m, raw)
		return m
	}
	if text := q.text(raw, attrHeaders); text != "" {
		_ = json.Unmarshal([]byte(text), &m.Headers) // one that does not read was not ours
	}
	switch q.text(raw, attrEncoding) {
	case encodingEmpty:
		m.Payload = nil
	case encodingBase64:
		if bytes, err := base64.StdEncoding.DecodeString(body); err == nil {
			m.Payload = bytes
		}
	}
	if q.fifo && m.Group == plainID(m.ID) && rest.Group == "" {
		m.Group = ""
	}
	return m
}

func (q *queue) text(raw *types.Message, name string) string {
	return deref(raw.MessageAttributes[name].StringValue)
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// foreign fills in what a message of somebody else's says: its string attributes are
// its headers, as far as they fit, and its envelope is opened where that is wanted.
func (q *queue) foreign(m *forebay.Message, raw *types.Message) {
	headers := make(map[string]string)
	for name, a := range raw.MessageAttributes {
		if a.StringValue != nil && len(headers) < forebay.MaxHeaders {
			headers[name] = *a.StringValue
		}
	}
	q.unwrap.open(m, headers)
	if len(headers) > 0 {
		m.Headers = maps.Clone(headers)
	}
}
