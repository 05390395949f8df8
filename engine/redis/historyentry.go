package redis

import (
	goredis "github.com/redis/go-redis/v9"

	"github.com/forebayhq/forebay"
)

// historyEvents are those of an entry; what cannot be read of it is left out.
func historyEvents(m goredis.XMessage) (out []forebay.HistoryEvent) {
	v := unpackStrings(text(m.Values["m"]))
	if len(v) == 0 {
		return nil
	}
	at, first := atMillis(number(v[0])), place(m.ID)
	for v = v[1:]; len(v) >= 7; { // groups of events, see lib/10_base.lua
		ev := forebay.HistoryEvent{
			At: at, Type: forebay.HistoryType(v[0]), Queue: v[1], Kind: v[2], Attempt: int(number(v[3])), State: forebay.State(v[4]),
		}
		more := int(number(v[5]))
		if more < 0 || more > len(v)-7 {
			break
		}
		for i := 6; i+1 < 6+more; i += 2 {
			tell(&ev, v[i], v[i+1])
		}
		jobs := int(number(v[6+more]))
		if v = v[7+more:]; jobs < 0 || jobs > len(v) {
			break
		}
		for _, id := range v[:jobs] {
			ev.Seq, ev.Job = first+int64(len(out)), messageID(id)
			out = append(out, ev)
		}
		v = v[jobs:]
	}
	return out
}

// tell reads what only some events have.
func tell(ev *forebay.HistoryEvent, name, value string) {
	switch name {
	case "d":
		ev.Due = atMillis(number(value))
	case "x":
		ev.Text = value
	case "c":
		cause, _ := readFailure(value, true)
		ev.Cause = &cause
	case "r":
		ev.Result = []byte(value)
	case "g":
		if p, ok := readProgress(value); ok {
			ev.Progress = &p
		}
	}
}

// packStrings writes strings of MessagePack.
func packStrings(all ...string) string {
	size := 0
	for _, s := range all {
		size += len(s) + 5
	}
	out := make([]byte, 0, size)
	for _, s := range all {
		switch n := len(s); {
		case n < 32:
			out = append(out, 0xa0|byte(n))
		case n < 1<<16:
			out = append(out, 0xda, byte(n>>8), byte(n))
		default:
			out = append(out, 0xdb, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		}
		out = append(out, s...)
	}
	return string(out)
}

// unpackStrings reads strings of MessagePack, up to the first that is none.
func unpackStrings(s string) (out []string) {
	for len(s) > 0 {
		size, head := 0, 1
		switch c := s[0]; {
		case c&0xe0 == 0xa0:
			size = int(c & 0x1f)
		case c >= 0xd9 && c <= 0xdb:
			for head = 1; head < min(1+1<<(c-0xd9), len(s)); head++ {
				size = size<<8 | int(s[head])
			}
		default:
			return out
		}
		if size > len(s)-head {
			return out
		}
		out, s = append(out, s[head:head+size]), s[head+size:]
	}
	return out
}
