package sqlite

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
)

// The options of a job are a list of fields inside its body, each a tag, a length
// and a value, and a zero tag at the end. A field that is not set is not there. One
// that is not known was written by a later version: the body does not parse.
const (
	optTimeout = iota + 1
	optDeadline
	optExpires
	optBackoff
	optDedup
	optTenant
	optOwner
	optTag // once for each
	optParent
	optTrace
	optKeepFinished
	optKeepDead
)

// tenantHash stands for a tenant where jobs are handed out; 0: the empty one.
func tenantHash(tenant string) uint64 {
	if tenant == "" {
		return 0
	}
	return max(xxhash.Sum64String(tenant), 1)
}

func appendOptions(b []byte, o *forebay.JobOptions) []byte {
	b = appendNumber(b, optTimeout, int64(o.Timeout))
	b = appendTime(b, optDeadline, o.Deadline)
	b = appendTime(b, optExpires, o.Expires)
	if o.Backoff != (forebay.Backoff{}) {
		v := appendString(make([]byte, 0, 64), string(o.Backoff.Kind))
		v = binary.AppendVarint(v, int64(o.Backoff.Base))
		v = binary.AppendVarint(v, int64(o.Backoff.Cap))
		v = binary.LittleEndian.AppendUint64(v, math.Float64bits(o.Backoff.Jitter))
		b = append(append(b, optBackoff, byte(len(v))), v...)
	}
	b = appendText(b, optDedup, string(o.Dedup))
	b = appendText(b, optTenant, o.Tenant)
	b = appendText(b, optOwner, o.Owner)
	for _, tag := range o.Tags {
		b = appendString(append(b, optTag), tag)
	}
	b = appendText(b, optParent, o.Parent)
	b = appendText(b, optTrace, o.Trace)
	b = appendKeep(b, optKeepFinished, o.Keep.Finished)
	b = appendKeep(b, optKeepDead, o.Keep.Dead)
	return append(b, 0)
}

func appendNumber(b []byte, tag byte, n int64) []byte {
	if n == 0 {
		return b
	}
	var v [binary.MaxVarintLen64]byte
	size := binary.PutVarint(v[:], n)
	return append(append(b, tag, byte(size)), v[:size]...)
}

func appendTime(b []byte, tag byte, t time.Time) []byte { return appendNumber(b, tag, instant(t)) }

// instant is a time that may be zero, as it is stored: 0.
func instant(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(nanos(t), 1)
}

func appendText(b []byte, tag byte, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, tag), s)
}

func appendKeep(b []byte, tag byte, k forebay.Keep) []byte {
	if k == (forebay.Keep{}) {
		return b
	}
	v := binary.AppendVarint(make([]byte, 0, 32), int64(k.Age))
	v = binary.AppendVarint(v, int64(k.Count))
	none := byte(0)
	if k.None {
		none = 1
	}
	v = append(v, none)
	return append(append(b, tag, byte(len(v))), v...)
}

// optionsRoom is no less than the options take.
func optionsRoom(o *forebay.JobOptions) int {
	n := 200 + len(o.Dedup) + len(o.Tenant) + len(o.Owner) + len(o.Parent) + len(o.Trace) + len(o.Backoff.Kind)
	for _, tag := range o.Tags {
		n += 4 + len(tag)
	}
	return n
}

// field gives the next option; tag 0: that was all.
func (r *reader) field() (tag byte, value []byte) {
	if tag = r.byte(); tag == 0 {
		return 0, nil
	}
	return tag, r.bytes()
}

// options copies the options out of a body.
func (r *reader) options() *forebay.JobOptions {
	o := &forebay.JobOptions{}
	for {
		tag, value := r.field()
		if tag == 0 || r.bad {
			return o
		}
		v := reader{b: value}
		switch tag {
		case optTimeout:
			o.Timeout = time.Duration(v.varint())
		case optDeadline:
			o.Deadline = time.Unix(0, v.varint()).UTC()
		case optExpires:
			o.Expires = time.Unix(0, v.varint()).UTC()
		case optBackoff:
			o.Backoff = forebay.Backoff{Kind: forebay.BackoffKind(v.string()), Base: time.Duration(v.varint()),
				Cap: time.Duration(v.varint()), Jitter: math.Float64frombits(v.u64())}
		case optDedup:
			o.Dedup = forebay.DedupMode(value)
		case optTenant:
			o.Tenant = string(value)
		case optOwner:
			o.Owner = string(value)
		case optTag:
			o.Tags = append(o.Tags, string(value))
		case optParent:
			o.Parent = string(value)
		case optTrace:
			o.Trace = string(value)
		case optKeepFinished:
			o.Keep.Finished = v.keep()
		case optKeepDead:
			o.Keep.Dead = v.keep()
		default:
			r.bad = true
		}
		r.bad = r.bad || v.bad
	}
}

func (r *reader) keep() forebay.Keep {
	return forebay.Keep{Age: time.Duration(r.varint()), Count: int(r.varint()), None: r.byte() != 0}
}
