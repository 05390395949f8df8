package sqlite

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
)

// The jobs of one commit that have finished, of one queue and kept alike, share a
// row. Its data is like that of a block: records with checksums. A record is
//
//	u8 version | u8 state | numbers | cause, failures, progress and result, each with its length | body
const (
	finishedVersion = 1
	finishedJobs    = 1024     // of one row
	finishedBytes   = 64 << 10 // of one row; its last job may go over it
	finishedIdx     = 10       // bits of an index, in the places of finished_id
)

// outcome is how a job finished. The longer parts are ready as they are stored.
type outcome struct {
	state                byte
	attempts, deliveries int
	sentAt, started      int64
	cause, failures      []byte // JSON
	progress, result     []byte
}

// finishedID is what a finished job is found by: the first bytes of an id that has the
// shape of a UUID of version 7, so that those of one time lie together, else a hash.
func finishedID(id []byte) int64 {
	var b [8]byte
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[14] == '7' && id[18] == '-' {
		_, first := hex.Decode(b[:4], id[:8])
		_, second := hex.Decode(b[4:6], id[9:13])
		_, third := hex.Decode(b[6:], id[14:18])
		if first == nil && second == nil && third == nil {
			return int64(binary.BigEndian.Uint64(b[:]) >> 1)
		}
	}
	return int64(xxhash.Sum64(id) >> 1)
}

func appendOutcome(b []byte, o *outcome, body []byte) []byte {
	b = append(b, finishedVersion, o.state)
	b = binary.AppendUvarint(b, uint64(o.attempts))
	b = binary.AppendUvarint(b, uint64(o.deliveries))
	b = binary.AppendVarint(b, o.sentAt)
	b = binary.AppendVarint(b, o.started)
	b = appendPart(appendPart(appendPart(appendPart(b, o.cause), o.failures), o.progress), o.result)
	return append(b, body...)
}

// finishedJob reads a record; at is when it finished.
func finishedJob(record []byte, queue string, at int64) (forebay.Job, error) {
	r := reader{b: record}
	version := r.byte()
	j := forebay.Job{State: stateOf(r.byte())}
	j.Attempts, j.Deliveries = int(r.uvarint()), int(r.uvarint())
	j.SentAt, j.FinishedAt = unix(r.varint()), unix(at)
	if started := r.varint(); started != 0 {
		j.StartedAt = unix(started)
	}
	cause, failures, progress, result := r.bytes(), r.bytes(), r.bytes(), r.bytes()
	if r.bad || version != finishedVersion {
		return j, errBody
	}
	var err error
	if j.Message, err = decodeBody(r.b, queue); err != nil {
		return j, err
	}
	if len(cause) > 0 && json.Unmarshal(cause, &j.Cause) != nil {
		return j, errBody
	}
	j.Failures = decodeFailures(string(failures))
	if len(progress) > 0 {
		j.Progress = readProgress(progress)
	}
	if len(result) > 0 {
		j.Result = slices.Clone(result)
	}
	return j, nil
}

// outcomeBody is the body in a record.
func outcomeBody(record []byte) ([]byte, error) {
	r := reader{b: record}
	r.take(2)
	r.uvarint()
	r.uvarint()
	r.varint()
	r.varint()
	for range 4 {
		r.bytes()
	}
	if r.bad {
		return nil, errBody
	}
	return r.b, nil
}

// recordOf finds the record of one job among those of a row; nil: it is not there,
// or damaged.
func recordOf(data []byte, idx, n int) []byte {
	crc := castagnoli()
	for at := 1; at+recordHeader <= len(data); {
		if int(binary.LittleEndian.Uint16(data[at+8:])) != idx {
			at += recordHeader + int(binary.LittleEndian.Uint32(data[at:]))
			continue
		}
		if _, from, to, ok := recordAt(data, at, n, crc); ok {
			return data[from:to]
		}
		break
	}
	recs, _ := records(data, n) // there is damage before it
	if r := recs[idx]; r[1] > 0 {
		return data[r[0]:r[1]]
	}
	return nil
}
