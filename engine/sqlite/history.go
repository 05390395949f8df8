package sqlite

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
)

// The history of one commit is one row, or a few: the events one after the other,
// with a checksum before them, and beside them a hash of each one's job, by which
// rows are passed over that do not speak of it.
//
//	u8 version | u32 CRC-32C of the rest | events, each with its length before it
const (
	historyVersion = 1
	historyHeader  = 5
	historyEvents  = 1024    // of one row
	historyBytes   = 1 << 20 // of one row; its last event may go over it
)

// historyTypes are the stored numbers of the types, from 1: only ever added to.
var historyTypes = [...]forebay.HistoryType{
	forebay.HistoryAdded, forebay.HistoryReplaced, forebay.HistoryChanged, forebay.HistoryStarted,
	forebay.HistoryProgress, forebay.HistoryLog, forebay.HistoryRetry, forebay.HistoryReleased,
	forebay.HistoryLeaseLost, forebay.HistoryCancelRequested, forebay.HistoryCompleted, forebay.HistoryDead,
	forebay.HistoryCancelled, forebay.HistoryExpired, forebay.HistoryReplayed, forebay.HistoryDiscarded,
}

const (
	evAdded = iota + 1
	evReplaced
	evChanged
	evStarted
	evProgress
	evLog
	evRetry
	evReleased
	evLeaseLost
	evCancelRequested
	evCompleted
	evDead
	evCancelled
	evExpired
	evReplayed
	evDiscarded
)

// Stored numbers of states: their places in forebay.States, from 1. 0: unchanged, or removed.
const (
	stWaiting = iota + 1
	stDelayed
	stActive
	stCompleted
	stDead
	stCancelled
	stExpired
)

func stateOf(n byte) forebay.State {
	if n == 0 || int(n) > len(forebay.States) {
		return ""
	}
	return forebay.States[n-1]
}

// note is one event to be written. The longer parts are ready as they are stored.
type note struct {
	typ, state byte
	attempt    int
	due        int64
	id, kind   []byte
	queue      string
	text       string
	progress   []byte // JSON, see storedProgress
	cause      []byte // JSON
	result     []byte
}

func idHash(id []byte) uint64 { return xxhash.Sum64(id) }

// historyRow is a row that is being filled, or was read.
type historyRow struct {
	seq  int64 // of its first event
	at   int64
	n    int
	jobs []byte
	data []byte
}

func (r *historyRow) size() int { return len(r.data) + len(r.jobs) }

// events are rows that are being filled.
type events []*historyRow

// add puts an event into the last row, or into a new one, with room for so many bytes.

func (e *events) add(n *note, room int) {
	var row *historyRow
	if k := len(*e); k > 0 && (*e)[k-1].n < historyEvents && len((*e)[k-1].data) < historyBytes {
		row = (*e)[k-1]
	} else {
		row = &historyRow{data: make([]byte, historyHeader, max(room, 512)), jobs: make([]byte, 0, max(room/8, 64))}
		*e = append(*e, row)
	}
	row.n++
	row.jobs = binary.LittleEndian.AppendUint64(row.jobs, idHash(n.id))
	at := len(row.data)
	b := append(row.data, 0, 0, 0, n.typ, n.state) // room for the length
	b = binary.AppendUvarint(b, uint64(n.attempt))
	b = binary.AppendVarint(b, n.due)
	b = appendPart(appendPart(b, n.id), n.kind)
	b = appendString(b, n.queue)
	if n.text != "" || n.progress != nil || n.cause != nil || n.result != nil {
		b = appendString(b, n.text)
		b = appendPart(appendPart(appendPart(b, n.progress), n.cause), n.result)
	}
	size := len(b) - at - 3
	b[at], b[at+1], b[at+2] = byte(size), byte(size>>8), byte(size>>16)
	row.data = b
}

func appendPart(b, part []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// seal makes a row ready to be stored.
func (r *historyRow) seal() {
	r.data[0] = historyVersion
	binary.LittleEndian.PutUint32(r.data[1:], crc32.Checksum(r.data[historyHeader:], castagnoli()))
}

// whole tells whether the row is as it was written.
func (r *historyRow) whole() bool {
	return len(r.data) >= historyHeader && r.data[0] == historyVersion && len(r.jobs) == 8*r.n &&
		binary.LittleEndian.Uint32(r.data[1:]) == crc32.Checksum(r.data[historyHeader:], castagnoli())
}

// has tells whether any event of the row may be of a job.
func (r *historyRow) has(hash uint64) bool {
	for at := 0; at+8 <= len(r.jobs); at += 8 {
		if binary.LittleEndian.Uint64(r.jobs[at:]) == hash {
			return true
		}
	}
	return false
}

// each calls f for the events of a row, until it returns false.
func (r *historyRow) each(f func(i int, e *reader) bool) {
	all := reader{b: r.data[historyHeader:]}
	for i := range r.n {
		size := all.take(3)
		if all.bad {
			return
		}
		e := reader{b: all.take(int(size[0]) | int(size[1])<<8 | int(size[2])<<16)}
		if all.bad || !f(i, &e) {
			return
		}
	}
}

// historyEvent reads one event. It tells whether it could.
func (r *reader) historyEvent(e *forebay.HistoryEvent) bool {
	n := int(r.byte())
	if n < 1 || n > len(historyTypes) {
		return false
	}
	e.Type = historyTypes[n-1]
	e.State = stateOf(r.byte())
	e.Attempt = int(r.uvarint())
	if due := r.varint(); due != 0 {
		e.Due = unix(due)
	}
	e.Job, e.Kind, e.Queue = r.string(), r.string(), r.string()
	if len(r.b) == 0 || r.bad {
		return !r.bad
	}
	e.Text = r.string()
	progress, cause, result := r.bytes(), r.bytes(), r.bytes()
	if len(progress) > 0 {
		p := readProgress(progress)
		e.Progress = &p
	}
	if len(cause) > 0 {
		e.Cause = new(forebay.Cause)
		r.bad = r.bad || json.Unmarshal(cause, e.Cause) != nil
	}
	if len(result) > 0 {
		e.Result = slices.Clone(result)
	}
	return !r.bad
}

// storedProgress is a progress with all of it.
type storedProgress struct {
	forebay.Progress
	Data json.RawMessage `json:"data,omitempty"`
}

func encodeProgress(p *forebay.Progress) ([]byte, error) {
	return json.Marshal(storedProgress{Progress: *p, Data: p.Data})
}

func readProgress(b []byte) forebay.Progress {
	var s storedProgress
	if json.Unmarshal(b, &s) != nil {
		return forebay.Progress{} // what we wrote we can read; if not, the job matters more
	}
	if len(s.Data) > 0 {
		s.Progress.Data = s.Data
	}
	return s.Progress
}
