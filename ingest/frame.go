package ingest

import (
	"bytes"
	"fmt"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// framed is one item of a request, cut out and not yet checked.
type framed struct {
	raw   []byte
	facts facts
}

// envelope is what a batch says of all its items; raw JSON values.
type envelope struct {
	batch, writeKey, sentAt, context, integrations []byte
}

// frame cuts a body into items. A single object is one item, or an envelope with
// a batch where wrapped says that there may be one; an array is its elements; more
// than one line of objects is NDJSON. It refuses only what cannot be cut.
func (c *call) frame(b []byte, wrapped bool) *problem {
	c.items, c.single, c.env = c.items[:0], false, envelope{}
	b = bytes.TrimPrefix(b, byteOrderMark)
	i := skipSpace(b, 0)
	if i == len(b) {
		return unreadable("the body is empty; a JSON object, an array of them, or one a line is needed")
	}
	switch b[i] {
	case '[':
		return c.frameItems(b, i)
	case '{':
	default:
		return unreadable("the body is not JSON; an object, an array of objects, or one object a line is needed")
	}
	var f facts
	end := f.scanValue(b, i)
	if end < 0 || skipSpace(b, end) < len(b) {
		return c.frameLines(b[i:], end-i)
	}
	c.items = append(c.items, framed{b[i:end], f})
	c.single = true
	if wrapped {
		return c.unwrap(b[i:end])
	}
	return nil
}

func (c *call) frameItems(b []byte, i int) *problem {
	most := c.edge.cfg.Limits.Events
	end := frameArray(b, i, func(raw []byte, f facts) bool {
		c.items = append(c.items, framed{raw, f})
		return len(c.items) <= most
	})
	switch {
	case len(c.items) > most:
		return tooMany(most)
	case end < 0:
		return unreadable(fmt.Sprintf("the array is damaged or ends early, after %d items; nothing of it was accepted", len(c.items)))
	case skipSpace(b, end) < len(b):
		return unreadable("more follows after the array; one array is allowed")
	}
	return nil
}

func tooMany(most int) *problem {
	return tooLarge("too_many_events", fmt.Sprintf("there are more than %d events in the request; send smaller batches", most))
}

// frameLines cuts NDJSON. first is the end of the first value, negative when it
// has none; then only a second line that begins like an object tells NDJSON with a
// damaged line from one damaged object that was written over several lines.
func (c *call) frameLines(b []byte, first int) *problem {
	line, rest, _ := bytes.Cut(b, []byte{'\n'})
	if first > len(line) || first < 0 && (len(rest) == 0 || !startsObject(rest)) {
		return unreadable("the body is damaged or ends early; a JSON object, an array of them, or one object a line is needed")
	}
	if first >= 0 && len(trimSpace(rest)) == 0 {
		return unreadable("more follows after the object; put further objects on lines of their own")
	}
	most := c.edge.cfg.Limits.Events
	for len(b) > 0 {
		line, b, _ = bytes.Cut(b, []byte{'\n'})
		if line = trimSpace(line); len(line) == 0 {
			continue
		}
		if len(c.items) == most {
			return tooMany(most)
		}
		var f facts
		f.scanValue(line, 0)
		c.items = append(c.items, framed{line, f})
	}
	return nil
}

func startsObject(b []byte) bool {
	i := skipSpace(b, 0)
	return i < len(b) && b[i] == '{'
}

// unwrap looks for a batch in a single object and makes its items the request's.
func (c *call) unwrap(object []byte) *problem {
	e, batches := &c.env, 0
	end := frameObject(object, 0, func(name, value []byte) {
		switch string(name) {
		case "batch":
			e.batch = value
			batches++
		case "writeKey":
			e.writeKey = value
		case "sentAt":
			e.sentAt = value
		case "context":
			e.context = value
		case "integrations":
			e.integrations = value
		}
	})
	if e.batch == nil {
		c.env = envelope{}
		return nil // a single event; whether it is one will be seen
	}
	if end < 0 {
		return unreadable("the object around the batch is damaged")
	}
	if batches > 1 {
		return unreadable("batch appears twice; one array is allowed")
	}
	if e.batch[0] != '[' {
		return unreadable("batch is " + kindOf(e.batch) + "; an array is needed")
	}
	c.items, c.single = c.items[:0], false
	return c.frameItems(e.batch, 0)
}
