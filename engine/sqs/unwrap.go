package sqs

import (
	"encoding/json"
	"slices"

	"github.com/forebayhq/forebay"
)

// Unwrap says which envelopes of a queue are opened. The zero value opens none: who
// controls no more than a body could fake one.
type Unwrap struct {
	SNS         bool
	Topics      []string // ARNs of the SNS topics that are believed; none: all
	EventBridge bool
	S3          bool
}

// open takes the payload out of its envelope. What is no envelope, or one of a topic
// that is not believed, stays as it is.
func (u Unwrap) open(m *forebay.Message, headers map[string]string) {
	if u.SNS {
		u.openSNS(m, headers)
	}
	switch {
	case u.EventBridge && openEventBridge(m, headers):
	case u.S3:
		openS3(m)
	}
}

func (u Unwrap) openSNS(m *forebay.Message, headers map[string]string) {
	var e struct {
		Type, MessageId, TopicArn, Subject string
		Message                            *string
		MessageAttributes                  map[string]struct{ Type, Value string }
	}
	if json.Unmarshal(m.Payload, &e) != nil || e.Type != "Notification" || e.Message == nil || e.TopicArn == "" {
		return
	}
	if len(u.Topics) > 0 && !slices.Contains(u.Topics, e.TopicArn) {
		return
	}
	m.Payload = []byte(*e.Message)
	m.ID = first(e.MessageId, m.ID) // the same for every subscriber
	headers["sns-topic"] = e.TopicArn
	if e.Subject != "" {
		headers["sns-subject"] = e.Subject
	}
	for name, a := range e.MessageAttributes {
		if len(headers) < forebay.MaxHeaders {
			headers[name] = a.Value
		}
	}
}

func openEventBridge(m *forebay.Message, headers map[string]string) bool {
	var e struct {
		ID         string          `json:"id"`
		DetailType string          `json:"detail-type"`
		Source     string          `json:"source"`
		Detail     json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(m.Payload, &e) != nil || e.DetailType == "" || e.Source == "" || len(e.Detail) == 0 {
		return false
	}
	m.Payload, m.Kind, m.ID = e.Detail, e.DetailType, first(e.ID, m.ID)
	headers["eventbridge-source"] = e.Source
	return true
}

// openS3 names the kind of a notification of S3. It may tell of many objects, so it
// stays whole.
func openS3(m *forebay.Message) {
	var e struct {
		Event   string
		Records []struct {
			EventSource string `json:"eventSource"`
			EventName   string `json:"eventName"`
		}
	}
	if json.Unmarshal(m.Payload, &e) != nil {
		return
	}
	switch {
	case e.Event == testEvent:
		m.Kind = testEvent
	case len(e.Records) > 0 && e.Records[0].EventSource == "aws:s3":
		m.Kind = "s3:" + e.Records[0].EventName
	}
}

// testEvent is what S3 sends once when a notification is set up. It is acked and not
// handed out.
const testEvent = "s3:TestEvent"
