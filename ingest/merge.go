package ingest

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// sentTime is when the batch was sent, zero when it does not say so.
func (e *envelope) sentTime() time.Time {
	if e.sentAt == nil || e.sentAt[0] == 'n' {
		return time.Time{}
	}
	t, ok := readTime(e.sentAt)
	if !ok {
		return time.Time{} // a batch is not refused for it; times stay as the client said
	}
	return t
}

// stamp gives an event that will be a bad row the time at which its batch was sent:
// a replay has no other way to know how far the client's clock was off.
func (e *envelope) stamp(raw []byte) []byte {
	if e.sentTime().IsZero() || !isObject(raw) {
		return raw
	}
	own := false
	if frameObject(raw, 0, func(n, _ []byte) { own = own || string(n) == "sentAt" }) != len(raw) || own {
		return raw
	}
	return withMember(raw, `"sentAt":`, e.sentAt)
}

// dropKeys takes the write key out of the events: some SDKs put it into each one,
// and a key must end neither in the database nor among the bad rows.
func (c *call) dropKeys() *problem {
	for i := range c.items {
		one := &c.items[i]
		if !isObject(one.raw) || !bytes.Contains(one.raw, []byte(`"writeKey"`)) {
			continue
		}
		if !c.take(int64(len(one.raw))) { // of the copy
			return outOfMemory()
		}
		one.raw = without(one.raw, "writeKey")
	}
	return nil
}

// mergeEnvelope gives each item of a Segment batch the context and integrations
// of the batch; what an item says itself stands.
func (c *call) mergeEnvelope() *problem {
	if c.dialect.name != "segment" || c.single {
		return nil
	}
	context, integrations := c.env.context, c.env.integrations
	if !isObject(context) && !isObject(integrations) {
		return nil
	}
	limit := c.edge.cfg.Limits.DecodedBytes
	added := int64(len(context)+len(integrations)) * int64(len(c.items))
	if added > limit {
		return tooLarge("decoded_too_large", fmt.Sprintf("the context of the batch adds %d bytes to its events together; at most %d are allowed", added, limit))
	}
	if !c.take(added) {
		return outOfMemory()
	}
	for i := range c.items {
		one := &c.items[i]
		if len(one.raw) > c.edge.cfg.Limits.EventBytes {
			continue // it will be rejected for that
		}
		one.raw = withDefault(one.raw, "context", context)
		one.raw = withDefault(one.raw, "integrations", integrations)
		one.facts = facts{}
		one.facts.scanValue(one.raw, 0)
	}
	return nil
}

// withDefault gives the object raw a member, or where it has one that is an object
// too, what is missing in that. Anything that is not as it should be is left as it
// is; the verdict on the item will say so.
func withDefault(raw []byte, name string, value []byte) []byte {
	if !isObject(raw) || !isObject(value) {
		return raw
	}
	var own []byte
	if frameObject(raw, 0, func(n, v []byte) {
		if string(n) == name {
			own = v
		}
	}) < 0 {
		return raw
	}
	if own == nil {
		return withMember(raw, `"`+name+`":`, value)
	}
	merged := mergeObjects(own, value)
	at := cap(raw) - cap(own) // own is a part of raw
	return slices.Concat(raw[:at], merged, raw[at+len(own):])
}

// mergeObjects adds to own the members of more that it does not have, in one pass:
// there may be a hundred thousand.
func mergeObjects(own, more []byte) []byte {
	if !isObject(own) {
		return own
	}
	have := map[string]bool{}
	if frameObject(own, 0, func(n, _ []byte) { have[string(n)] = true }) < 0 {
		return own
	}
	own = trimSpace(own)
	out := append(make([]byte, 0, len(own)+len(more)), own[:len(own)-1]...)
	empty := len(have) == 0
	frameObject(more, 0, func(n, v []byte) {
		if have[string(n)] {
			return
		}
		if !empty {
			out = append(out, ',')
		}
		empty = false
		out = append(append(append(append(out, '"'), n...), `":`...), v...)
	})
	return append(out, '}')
}

// withMember gives a copy of object with one more member at its end.
func withMember(object []byte, name string, value []byte) []byte {
	object = trimSpace(object)
	body := object[:len(object)-1]
	if last := trimSpace(body); len(last) > 1 {
		return slices.Concat(body, []byte(","), []byte(name), value, []byte("}"))
	}
	return slices.Concat(body, []byte(name), value, []byte("}"))
}

// without gives object without a member.
func without(object []byte, name string) []byte {
	from, to := -1, -1
	frameObject(object, 0, func(n, v []byte) {
		if string(n) == name && from < 0 {
			from, to = cap(object)-cap(n)-1, cap(object)-cap(v)+len(v)
		}
	})
	if from < 0 {
		return object
	}
	if i := skipSpace(object, to); i < len(object) && object[i] == ',' {
		to = i + 1
	} else if before := bytes.TrimRight(object[:from], " \t\r\n"); len(before) > 0 && before[len(before)-1] == ',' {
		from = len(before) - 1
	}
	return slices.Concat(object[:from], object[to:])
}
