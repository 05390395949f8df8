package sqlite

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/forebayhq/forebay"
)

// ticket is what a receipt says: which item of which lease it is, and where the
// message lies. So a receipt leads to its message for ever, and nothing is remembered
// for it. The start counts the openings of the store: leases of a process that has
// ended are void, unless they were kept.
type ticket struct {
	start int64 // counts the openings of the store
	lease int64
	at    int // the item of the lease
	key   int64
	idx   int
}

// A receipt is a ticket and its seal, in base64url:
//
//	u32 start | u16 at | u16 idx | u64 lease | u64 key | 8 bytes of the seal
const (
	ticketBytes  = 24
	sealBytes    = 8
	receiptChars = ((ticketBytes+sealBytes)*8 + 5) / 6
)

// sealer makes and checks receipts with the key of the store, so that nobody can make
// one up. It may be used by many at once.
type sealer struct{ block cipher.Block }

// seal is the CBC-MAC of a ticket, cut to 8 bytes: sound, since all have one length.
func (s sealer) seal(ticket []byte) (sum [aes.BlockSize]byte) {
	s.block.Encrypt(sum[:], ticket[:aes.BlockSize])
	var last [aes.BlockSize]byte
	copy(last[:], ticket[aes.BlockSize:ticketBytes])
	subtle.XORBytes(sum[:], sum[:], last[:])
	s.block.Encrypt(sum[:], sum[:])
	return sum
}

func (s sealer) receipt(t ticket) forebay.Receipt {
	var b [ticketBytes + sealBytes]byte
	binary.BigEndian.PutUint32(b[:], uint32(t.start))
	binary.BigEndian.PutUint16(b[4:], uint16(t.at))
	binary.BigEndian.PutUint16(b[6:], uint16(t.idx))
	binary.BigEndian.PutUint64(b[8:], uint64(t.lease))
	binary.BigEndian.PutUint64(b[16:], uint64(t.key))
	sum := s.seal(b[:])
	copy(b[ticketBytes:], sum[:sealBytes])
	var text [receiptChars]byte
	base64.RawURLEncoding.Encode(text[:], b[:])
	return forebay.Receipt(text[:])
}

// ticket reads a receipt. What is none gives the zero ticket, which is of no lease.
func (s sealer) ticket(r forebay.Receipt) (t ticket, ok bool) {
	if len(r) != receiptChars {
		return ticket{}, false
	}
	var b [ticketBytes + sealBytes]byte
	if n, err := base64.RawURLEncoding.Strict().Decode(b[:], []byte(r)); err != nil || n != len(b) {
		return ticket{}, false
	}
	if sum := s.seal(b[:]); subtle.ConstantTimeCompare(sum[:sealBytes], b[ticketBytes:]) == 0 {
		return ticket{}, false
	}
	return ticket{
		start: int64(binary.BigEndian.Uint32(b[:])),
		at:    int(binary.BigEndian.Uint16(b[4:])),
		idx:   int(binary.BigEndian.Uint16(b[6:])),
		lease: int64(binary.BigEndian.Uint64(b[8:])),
		key:   int64(binary.BigEndian.Uint64(b[16:])),
	}, true
}

// tickets reads many, in the order of the receipts.
func (s sealer) tickets(receipts []forebay.Receipt) []ticket {
	ts := make([]ticket, len(receipts))
	for i, r := range receipts {
		ts[i], _ = s.ticket(r)
	}
	return ts
}

// loadSealer takes up the key of the store's receipts, and makes one for a new store.
// Where it is lost to damage, another is made, and the receipts of before are void.
func (l *loop) loadSealer(t *tx) error {
	var key [aes.BlockSize]byte
	if _, err := rand.Read(key[:]); err != nil {
		return forebay.Errorf(forebay.CodeUnavailable, "sqlite: open", "no key for receipts: %w", err)
	}
	for i := range 2 {
		name, half := "receipts/"+strconv.Itoa(i), key[i*8:][:8]
		if err := t.exec("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, int64(binary.BigEndian.Uint64(half))); err != nil {
			return err
		}
		value, err := l.db.int("SELECT value FROM meta WHERE name = ?", name)
		if err != nil {
			return err
		}
		binary.BigEndian.PutUint64(half, uint64(value))
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return forebay.Errorf(forebay.CodeInternal, "sqlite: open", "the key of receipts: %w", err)
	}
	l.sealer = sealer{block}
	return nil
}

// held finds the live message of a ticket.
func (l *loop) held(t ticket) (*lease, *item) {
	ls := l.leases[t.lease]
	if ls == nil || ls.start != t.start || t.at >= len(ls.items) {
		return nil, nil
	}
	if it := &ls.items[t.at]; it.state == itemLeased {
		return ls, it
	}
	return nil, nil
}
