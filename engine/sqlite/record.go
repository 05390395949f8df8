package sqlite

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
)

// A record is one message inside a block:
//
//	u32 length of body | u32 CRC-32C of the rest | u16 index | body
//
// The body says all of a message but its queue, which the block's lane tells.
// The length is what leads to the next record; where it is damaged, the next one
// is found by its checksum (see records).
const recordHeader = 10

// Flags in the first byte of a body say what follows.
const (
	hasGroup    = 1 << iota // u64 hash, and the group
	hasLimitKey             // u64 hash, and the limit key
	hasTime                 // not before
	hasDedupKey             // dedup key
	hasLimits               // attempts, deliveries, dedup window
	hasHeaders
	hasJob     // u64 hash of the tenant, and the options
	flagsKnown = 1<<iota - 1
)

var errBody = errors.New("record body does not parse")

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// appendBody encodes a message. The hashes come first, so that the engine can
// decide about order and limits without decoding the rest.
func appendBody(b []byte, m *forebay.Message, group, limitKey uint64) []byte {
	at := len(b)
	b = append(b, 0, byte(m.Priority))
	flag := func(f byte) { b[at] |= f }
	if group != 0 {
		flag(hasGroup)
		b = binary.LittleEndian.AppendUint64(b, group)
	}
	if m.LimitKey != "" {
		flag(hasLimitKey)
		b = binary.LittleEndian.AppendUint64(b, limitKey)
	}
	if m.Job != nil {
		flag(hasJob)
		b = binary.LittleEndian.AppendUint64(b, tenantHash(m.Job.Tenant))
	}
	b = appendString(b, m.ID)
	b = appendString(b, m.Kind)
	if group != 0 {
		b = appendString(b, m.Group)
	}
	if m.LimitKey != "" {
		b = appendString(b, m.LimitKey)
	}
	if !m.NotBefore.IsZero() {
		flag(hasTime)
		b = binary.AppendVarint(b, nanos(m.NotBefore))
	}
	if m.DedupKey != "" {
		flag(hasDedupKey)
		b = appendString(b, m.DedupKey)
	}
	if m.Limits != (forebay.Limits{}) || m.DedupWindow != 0 {
		flag(hasLimits)
		b = binary.AppendVarint(b, int64(m.Limits.Attempts))
		b = binary.AppendVarint(b, int64(m.Limits.Deliveries))
		b = binary.AppendVarint(b, int64(m.DedupWindow))
	}
	if len(m.Headers) > 0 {
		flag(hasHeaders)
		b = appendHeaders(b, m.Headers)
	}
	if m.Job != nil {
		b = appendOptions(b, m.Job)
	}
	return append(b, m.Payload...)
}

// bodyRoom is no less than a message's body takes.
func bodyRoom(m *forebay.Message) int {
	const numbers = 2 + 2*8 + 4*binary.MaxVarintLen64 + 6*3 // lengths of strings take three bytes at most
	n := numbers + len(m.ID) + len(m.Kind) + len(m.Group) + len(m.LimitKey) + len(m.DedupKey) + len(m.Payload)
	if m.Job != nil {
		n += 8 + optionsRoom(m.Job)
	}
	for name, value := range m.Headers {
		n += 2*3 + len(name) + len(value)
	}
	return n
}

// nanos is a time in nanoseconds since 1970; one that is too long ago for that is
// the first that is not.
func nanos(t time.Time) int64 {
	if first := time.Unix(0, math.MinInt64); t.Before(first) {
		t = first
	}
	return t.UnixNano()
}

func appendHeaders(b []byte, headers map[string]string) []byte {
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names) // one message has one encoding
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, name := range names {
		b = appendString(appendString(b, name), headers[name])
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// reader takes a body apart. The first error stays, and all reads after it give
// zero values.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	return r.take(int(n))
}

func (r *reader) string() string { return string(r.bytes()) }

// routing reads the hashes only.
func routing(body []byte) (group, limitKey uint64) {
	r := reader{b: body}
	flags := r.byte()
	r.byte()
	if flags&hasGroup != 0 {
		group = r.u64()
	}
	if flags&hasLimitKey != 0 {
		limitKey = r.u64()
	}
	return group, limitKey
}

// decodeBody copies a message out of a body.
func decodeBody(body []byte, queue string) (forebay.Message, error) {
	r := reader{b: body}
	flags := r.byte()
	m := forebay.Message{Queue: queue, Priority: forebay.Priority(r.byte())}
	if flags&hasGroup != 0 {
		r.u64()
	}
	if flags&hasLimitKey != 0 {
		r.u64()
	}
	if flags&hasJob != 0 {
		r.u64()
	}
	m.ID, m.Kind = r.string(), r.string()
	if flags&hasGroup != 0 {
		m.Group = r.string()
	}
	if flags&hasLimitKey != 0 {
		m.LimitKey = r.string()
	}
	if flags&hasTime != 0 {
		m.NotBefore = time.Unix(0, r.varint()).UTC()
	}
	if flags&hasDedupKey != 0 {
		m.DedupKey = r.string()
	}
	if flags&hasLimits != 0 {
		m.Limits = forebay.Limits{Attempts: int(r.varint()), Deliveries: int(r.varint())}
		m.DedupWindow = time.Duration(r.varint())
	}
	if flags&hasHeaders != 0 {
		m.Headers = readHeaders(&r)
	}
	if flags&hasJob != 0 {
		m.Job = r.options()
	}
	if r.bad || flags > flagsKnown {
		return forebay.Message{}, errBody
	}
	if len(r.b) > 0 {
		m.Payload = slices.Clone(r.b)
	}
	return m, nil
}

func readHeaders(r *reader) map[string]string {
	n := r.uvarint()
	if n == 0 || n > forebay.MaxHeaders { // none has no flag
		r.bad = true
		return nil
	}
	headers := make(map[string]string, n)
	for range n {
		name := r.string()
		headers[name] = r.string()
	}
	return headers
}
