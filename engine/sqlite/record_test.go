package sqlite

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
)

var update = flag.Bool("update", false, "write the golden files anew")

func specimens() []forebay.Message {
	return []forebay.Message{
		{ID: "plain", Queue: "q"},
		{ID: "payload", Queue: "q", Kind: "k", Payload: []byte("{\"a\":1}\x00\xff")},
		{ID: "all", Queue: "q", Kind: "kind", Payload: []byte("p"), Headers: map[string]string{"b": "2", "a": "", "ü": "ß"},
			Priority: forebay.At(0), NotBefore: time.Unix(1_700_000_000, 123456789).UTC(), DedupKey: "key", DedupWindow: time.Minute,
			Group: "group", LimitKey: "limit", Limits: forebay.Limits{Attempts: 3, Deliveries: 300}},
		{ID: "large", Queue: "q", Payload: bytes.Repeat([]byte("0123456789"), 1000), Priority: forebay.At(9)},
	}
}

func blockOf(msgs []forebay.Message) []byte {
	data := []byte{blockVersion}
	for i := range msgs {
		m := encode(&msgs[i], time.Now(), nil)
		data = appendRecord(data, i, m.body)
	}
	return data
}

func TestRecordRoundTrip(t *testing.T) {
	msgs := specimens()
	data := blockOf(msgs)
	recs, bad := records(data, len(msgs))
	if bad != 0 {
		t.Fatalf("%d records are damaged", bad)
	}
	for i, want := range msgs {
		body := data[recs[i][0]:recs[i][1]]
		got, err := decodeBody(body, "q")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		m := encode(&want, time.Now(), nil)
		if group, key := routing(body); group != m.group || key != m.limitKey {
			t.Errorf("%s: routing gives %x, %x; want %x, %x", want.ID, group, key, m.group, m.limitKey)
		}
	}
}

// What was written by any version stays readable for ever. Files are added here,
// never changed.
func TestGoldenBlock(t *testing.T) {
	file := filepath.Join("testdata", "golden", "block-v1.hex")
	data := blockOf(specimens())
	if *update {
		var lines strings.Builder
		for at := 0; at < len(data); at += 32 {
			lines.WriteString(hex.EncodeToString(data[at:min(at+32, len(data))]) + "\n")
		}
		if err := os.WriteFile(file, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(golden, data) {
		t.Errorf("blocks are written differently now: %x", data)
	}
	recs, bad := records(golden, len(specimens()))
	if bad != 0 {
		t.Fatalf("%d records are damaged", bad)
	}
	for i, want := range specimens() {
		if got, err := decodeBody(golden[recs[i][0]:recs[i][1]], "q"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

// A damaged record loses itself only, wherever the damage is.
func TestDamagedRecord(t *testing.T) {
	msgs := specimens()
	data := blockOf(msgs)
	whole, _ := records(data, len(msgs))
	for at := 1; at < len(data); at++ {
		damaged := bytes.Clone(data)
		damaged[at] ^= 0x55
		recs, bad := records(damaged, len(msgs))
		if bad != 1 {
			t.Fatalf("damage at %d: %d records are damaged", at, bad)
		}
		for i, r := range recs {
			if r[1] != 0 && r != whole[i] {
				t.Fatalf("damage at %d: record %d is found at %v, and is at %v", at, i, r, whole[i])
			}
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(blockOf(specimens()), 4)
	f.Add(blockOf(specimens()), 1)
	f.Add([]byte{blockVersion}, 1)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		n = 1 + (n&0x7fffffff)%blockMessages
		recs, bad := records(data, n)
		found := 0
		for _, r := range recs {
			if r[1] != 0 {
				found++
				_ = data[r[0]:r[1]]
				routing(data[r[0]:r[1]])
			}
		}
		if found+bad != n || len(recs) != n {
			t.Errorf("%d found and %d damaged of %d", found, bad, n)
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, m := range specimens() {
		f.Add(encode(&m, time.Now(), nil).body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		routing(body)
		m, err := decodeBody(body, "q")
		if err != nil {
			return
		}
		again, err := decodeBody(encode(&m, time.Now(), nil).body, "q")
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%+v came back as %+v, %v", m, again, err)
		}
	})
}

func FuzzEntries(f *testing.F) {
	var ids []byte
	for _, m := range specimens() {
		n := encode(&m, time.Now(), nil)
		ids = n.entry(0).append(ids)
	}
	f.Add(ids)
	f.Fuzz(func(t *testing.T, ids []byte) {
		var again []byte
		whole := eachEntry(ids, func(_ int, n *entry) bool {
			again = n.append(again)
			return true
		})
		if whole && len(again) > len(ids) {
			t.Errorf("%x came back as %x", ids, again)
		}
	})
}

func FuzzLease(f *testing.F) {
	f.Add(encodeLease([]item{{ref: ref{key: 1 << 50, idx: 3, deliveries: 2}}, {ref: ref{key: 5, idx: 1023, deliveries: 1}}}))
	kept := lease{start: 7, items: []item{{ref: ref{key: 1 << 50, idx: 3, deliveries: 2}, until: 5}, {state: itemEnded}, {ref: ref{key: 5, deliveries: 1}, until: 3}}}
	f.Add(encodeKept(&kept))
	f.Fuzz(func(t *testing.T, b []byte) {
		decodeLease(b)
		start, items, ok := decodeKept(b)
		if !ok {
			return
		}
		ls := lease{start: start, items: make([]item, len(items))}
		for i, in := range items {
			ls.items[i] = item{ref: ref{key: in.key, idx: in.idx, deliveries: in.deliveries}, until: in.until, state: itemLeased}
			if in.until == 0 {
				ls.items[i].state = itemEnded
			}
		}
		againStart, again, ok := decodeKept(encodeKept(&ls))
		for i := range items {
			if items[i].until == 0 { // it says nothing of the rest
				items[i] = leaseItem{}
			}
		}
		if !ok || againStart != start || !reflect.DeepEqual(again, items) {
			t.Errorf("%+v came back as %+v", items, again)
		}
	})
}
