package sqlite

import (
	"crypto/aes"
	"testing"

	"github.com/forebayhq/forebay"
)

func testSealer(t testing.TB, key byte) sealer {
	t.Helper()
	block, err := aes.NewCipher(append(make([]byte, aes.BlockSize-1), key))
	if err != nil {
		t.Fatal(err)
	}
	return sealer{block}
}

// Receipts outlive versions, so their form stays.
func TestReceiptForm(t *testing.T) {
	t.Parallel()
	s := testSealer(t, 1)
	in := ticket{start: 3, lease: 70_000, at: 9_999, key: blockKey(laneID(12, 5), 77), idx: 1023}
	const want = "AAAAAycPA_8AAAAAAAERcAAAfQAAAABNfVdl2Ei1VH4"
	r := s.receipt(in)
	if r != want {
		t.Errorf("the receipt is %q, and was %q for ever", r, want)
	}
	if got, ok := s.ticket(r); !ok || got != in {
		t.Errorf("%+v came back as %+v, %v", in, got, ok)
	}
}

func TestReceiptSeal(t *testing.T) {
	t.Parallel()
	s := testSealer(t, 1)
	r := s.receipt(ticket{start: 3, lease: 5, at: 1, key: 1 << 41, idx: 7})
	if _, ok := testSealer(t, 2).ticket(r); ok {
		t.Error("another store takes the receipt")
	}
	const chars = "AQgw"
	for i := range r {
		for _, c := range chars {
			changed := []byte(r)
			changed[i] = byte(c)
			if got, ok := s.ticket(forebay.Receipt(changed)); ok && string(changed) != string(r) {
				t.Errorf("%q, changed at %d, is taken for %+v", changed, i, got)
			}
		}
	}
}

func FuzzReceipt(f *testing.F) {
	s := testSealer(f, 1)
	f.Add(string(s.receipt(ticket{start: 3, lease: 5, at: 1, key: 1 << 41, idx: 7})))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if in, ok := s.ticket(forebay.Receipt(text)); ok && string(s.receipt(in)) != text {
			t.Errorf("%q is taken for %+v, whose receipt is another", text, in)
		}
	})
}
