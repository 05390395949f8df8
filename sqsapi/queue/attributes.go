package queue

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settings are the attributes of a queue as the actions use them.
type settings struct {
	fifo       bool
	visibility time.Duration
	retention  time.Duration
	delay      time.Duration
	wait       time.Duration
	maxBytes   int
	content    bool // dedup ids are made of the body
	perGroup   bool // dedup ids are those of a group
	redrive    *redrivePolicy
	allow      *redriveAllow
}

// redrivePolicy says where messages go that were received too often.
type redrivePolicy struct {
	Target string // an ARN
	Max    int
}

// redriveAllow says which queues may name a queue as their dead letter queue.
type redriveAllow struct {
	Permission string   `json:"redrivePermission"`
	Sources    []string `json:"sourceQueueArns"`
}

// attribute is what there is to know of a queue attribute that can be set.
type attribute struct {
	name    string
	initial string // empty: absent until it is set
	check   func(l *limits, value string) bool
	fifo    bool // only FIFO queues have it
}

func number(least, most int) func(*limits, string) bool {
	return func(_ *limits, v string) bool { return within(v, least, most) }
}

func within(v string, least, most int) bool {
	n, err := strconv.Atoi(v)
	return err == nil && n >= least && n <= most
}

func oneOf(values ...string) func(*limits, string) bool {
	return func(_ *limits, v string) bool { return slices.Contains(values, v) }
}

func attributes() []attribute {
	flag := oneOf("true", "false")
	return []attribute{
		{name: "VisibilityTimeout", initial: strconv.Itoa(defaultVisible), check: number(0, maxVisibility)},
		{name: "MaximumMessageSize", initial: strconv.Itoa(maxMessageBytes), check: number(minMessageBytes, maxMessageBytes)},
		{name: "MessageRetentionPeriod", initial: strconv.Itoa(defaultRetention), check: func(l *limits, v string) bool { return within(v, 60, l.retention) }},
		{name: "DelaySeconds", initial: "0", check: func(l *limits, v string) bool { return within(v, 0, l.delay) }},
		{name: "ReceiveMessageWaitTimeSeconds", initial: "0", check: func(l *limits, v string) bool { return within(v, 0, l.wait) }},
		{name: "SqsManagedSseEnabled", initial: "true", check: flag},
		{name: "Policy", check: func(_ *limits, v string) bool { return v == "" || json.Valid([]byte(v)) }},
		{name: "RedrivePolicy", check: func(_ *limits, v string) bool { _, err := parseRedrive(v); return err == nil }},
		{name: "RedriveAllowPolicy", check: func(_ *limits, v string) bool { _, err := parseAllow(v); return err == nil }},
		{name: "KmsMasterKeyId", check: func(_ *limits, v string) bool { return len(v) <= 2048 }},
		{name: "KmsDataKeyReusePeriodSeconds", check: number(60, 86_400)},
		{name: "FifoQueue", check: flag},
		{name: "ContentBasedDeduplication", initial: "false", check: flag, fifo: true},
		{name: "DeduplicationScope", initial: "queue", check: oneOf("queue", "messageGroup"), fifo: true},
		{name: "FifoThroughputLimit", initial: "perQueue", check: oneOf("perQueue", "perMessageGroupId"), fifo: true},
	}
}

// checked looks at attributes that a caller wants to set, and gives them as they are
// kept: numbers without signs or zeros before them, nothing for what is taken away.
func (s *Service) checked(fifo bool, in map[string]string) (map[string]string, error) {
	out := maps.Clone(in)
	if f := (*Fault)(nil); in["RedrivePolicy"] != "" {
		if _, err := parseRedrive(in["RedrivePolicy"]); errors.As(err, &f) {
			return nil, f
		}
	}
	for name, value := range in {
		i := slices.IndexFunc(s.attributes, func(a attribute) bool { return a.name == name })
		if i < 0 || s.attributes[i].fifo && !fifo {
			return nil, fault("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
		if !s.attributes[i].check(&s.limits, value) {
			return nil, badAttribute(name)
		}
		if n, err := strconv.Atoi(value); err == nil && name != "KmsMasterKeyId" {
			out[name] = strconv.Itoa(n)
		}
	}
	if in["KmsMasterKeyId"] != "" {
		if in["SqsManagedSseEnabled"] == "true" {
			return nil, fault("InvalidAttributeName", "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
		}
		out["SqsManagedSseEnabled"] = "false"
	}
	if in["SqsManagedSseEnabled"] == "true" {
		out["KmsMasterKeyId"] = ""
	}
	return out, nil
}

func badAttribute(name string) *Fault {
	return fault("InvalidAttributeValue", "Invalid value for the parameter %s.", name)
}

// merged is what the attributes of a queue are after some were set. An empty value
// takes one away.
func merged(old, set map[string]string) map[string]string {
	all := maps.Clone(old)
	if all == nil {
		all = map[string]string{}
	}
	for name, value := range set {
		if value == "" {
			delete(all, name)
			continue
		}
		all[name] = value
	}
	return all
}

// whole adds the defaults of what was not set.
func (s *Service) whole(fifo bool, set map[string]string) map[string]string {
	all := maps.Clone(set)
	if all == nil {
		all = map[string]string{}
	}
	for _, a := range s.attributes {
		if _, is := all[a.name]; !is && a.initial != "" && (fifo || !a.fifo) {
			all[a.name] = a.initial
		}
	}
	if fifo {
		all["FifoQueue"] = "true"
	}
	return all
}

// checkTogether finds what attributes that are right alone say wrong together.
func checkTogether(all map[string]string) error {
	if all["FifoThroughputLimit"] == "perMessageGroupId" && all["DeduplicationScope"] != "messageGroup" {
		return fault("InvalidAttributeValue", "The perMessageGroupId value of FifoThroughputLimit is allowed only where DeduplicationScope is messageGroup.")
	}
	return nil
}

func parseSettings(fifo bool, all map[string]string) settings {
	seconds := func(name string) time.Duration {
		n, _ := strconv.Atoi(all[name]) // checked when it was set
		return time.Duration(n) * time.Second
	}
	set := settings{
		fifo: fifo, visibility: seconds("VisibilityTimeout"), retention: seconds("MessageRetentionPeriod"),
		delay: seconds("DelaySeconds"), wait: seconds("ReceiveMessageWaitTimeSeconds"),
		content: all["ContentBasedDeduplication"] == "true", perGroup: all["DeduplicationScope"] == "messageGroup",
	}
	set.maxBytes, _ = strconv.Atoi(all["MaximumMessageSize"])
	set.redrive, _ = parseRedrive(all["RedrivePolicy"])
	set.allow, _ = parseAllow(all["RedriveAllowPolicy"])
	return set
}

// parseRedrive reads a RedrivePolicy; its count may be a number or a text.
func parseRedrive(text string) (*redrivePolicy, error) {
	if text == "" {
		return nil, nil
	}
	var raw struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, err
	}
	n := 10
	if raw.Max != nil {
		var err error
		if n, err = strconv.Atoi(strings.Trim(string(raw.Max), `"`)); err != nil {
			return nil, err
		}
	}
	if n < 1 || n > 1000 {
		return nil, fault("InvalidParameterValueException", "Value %s for parameter RedrivePolicy is invalid. Reason: Invalid value for maxReceiveCount: %d, valid values are from 1 to 1000 both inclusive.", text, n)
	}
	if nameOfARN(raw.Target) == "" {
		return nil, fault("InvalidParameterValueException", "Value %s for parameter RedrivePolicy is invalid. Reason: Invalid value for deadLetterTargetArn.", text)
	}
	return &redrivePolicy{Target: raw.Target, Max: n}, nil
}

func parseAllow(text string) (*redriveAllow, error) {
	if text == "" {
		return nil, nil
	}
	var a redriveAllow
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, err
	}
	named := a.Permission == "byQueue"
	if !named && a.Permission != "allowAll" && a.Permission != "denyAll" ||
		named != (len(a.Sources) > 0) || len(a.Sources) > 10 {
		return nil, badAttribute("RedriveAllowPolicy")
	}
	return &a, nil
}
