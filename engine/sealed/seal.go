package sealed

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/forebayhq/forebay"
)

// What is sealed looks like this:
//
//	magic | flags | data key | salt | count | ciphertext and tag
//
// The data key is its id, or (flagInline) the id of a master key, after its length, and the
// data key sealed by it. What seals is a key of its own for each salt, made of the data key
// by HKDF. The salt is random and of one process, which counts: so no nonce comes twice,
// however many processes share a data key. All but the ciphertext is authenticated with
// it, and so are what it is, and for which queue and id.
const (
	magic        = "\xf5fb1" // begins no text: 0xf5 is in no UTF-8
	idBytes      = 8
	saltBytes    = 16
	countBytes   = 8
	nonceBytes   = 12
	tagBytes     = 16
	wrappedBytes = nonceBytes + KeyBytes + tagBytes

	// most is how much is sealed under one salt.
	most = 1 << 31
)

const (
	flagInline   = 1 << iota
	flagDeflated // the plain text is compressed
	flagByKey    // bound to the dedup key: jobs with one key stand in for each other
	flagUnbound  // who sealed it did not know for what
	flagsKnown   = 1<<iota - 1
)

// What is sealed: in the words of whoever reads a store, and never the one for the other.
const (
	isPayload  = 'p'
	isResult   = 'r'
	isCause    = 'c'
	isProgress = 'g'
	isLog      = 'l'
	isDocument = 'd'
	isBox      = 'b'
)

// place is what something sealed is bound to.
type place struct {
	what  byte
	queue string
	id    string
	bound byte // flagByKey, flagUnbound or 0
}

func (p place) append(b []byte) []byte {
	b = append(b, p.what)
	if p.bound == flagUnbound {
		return b
	}
	b = append(binary.AppendUvarint(b, uint64(len(p.queue))), p.queue...)
	return append(binary.AppendUvarint(b, uint64(len(p.id))), p.id...)
}

// noKey is the error of something whose key is not here. It may be elsewhere.
type noKey struct{ id string }

func (e *noKey) Error() string {
	return "sealed by the key " + e.id + ", which is not among those given here"
}

func tampered(format string, args ...any) error {
	return forebay.Errorf(forebay.CodeDamaged, "sealed", format, args...)
}

// coded is an error as callers get it.
func coded(err error) error {
	var missing *noKey
	if errors.As(err, &missing) {
		e := forebay.Errorf(forebay.CodeUnauthorized, "sealed", "%w", err)
		e.Hint = "give that key back (encryptionKeys." + missing.id + ")"
		return e
	}
	return err
}

// dataKey is one key that seals: that of one salt.
type dataKey struct {
	head  []byte // up to the salt; the flags are those of no seal
	aead  cipher.AEAD
	count atomic.Uint64
}

// sealer seals and opens.
type sealer struct {
	keys  *Keys
	vault *vault // nil: each seal carries its data key

	now    atomic.Pointer[dataKey] // what seals; nil: nothing does
	prints cipher.Block            // of fingerprints; nil: there is no key that they could be of

	mu     sync.RWMutex
	opened map[string]*dataKey // by what stands between flags and count
}

// maxOpened is how many keys of salts are kept at hand.
const maxOpened = 4096

// begin makes ready what seals.
func (s *sealer) begin(ctx context.Context) error {
	prints := s.keys.prints
	if s.vault != nil {
		first, err := s.vault.load(ctx)
		if err != nil {
			return coded(err)
		}
		if first != nil {
			prints = derive(first, nil, "forebay fingerprints")
		}
	}
	if prints != nil {
		block, err := aes.NewCipher(prints)
		if err != nil {
			return forebay.Errorf(forebay.CodeInternal, "sealed", "%w", err)
		}
		s.prints = block
	}
	if s.keys.current != "" {
		s.renew()
	}
	return nil
}

func (s *sealer) seals() bool { return s.now.Load() != nil }

// renew begins another salt.
func (s *sealer) renew() *dataKey {
	var name, data []byte
	var flags byte
	if s.vault != nil {
		name, data = s.vault.sealing()
	} else {
		data, flags = random(KeyBytes), flagInline
		name = append([]byte{byte(len(s.keys.current))}, s.keys.current...)
		name = append(name, s.keys.wrap("", data)...)
	}
	salt := random(saltBytes)
	head := append(append(append([]byte(magic), flags), name...), salt...)
	k := &dataKey{head: head, aead: aead(derive(data, salt, "forebay seal"))}
	s.now.Store(k)
	return k
}

// seal seals plain.
func (s *sealer) seal(p place, plain []byte, flags byte) []byte {
	k := s.now.Load()
	n := k.count.Add(1)
	if n >= most {
		k = s.renew()
		n = k.count.Add(1)
	}
	begin := len(k.head) + countBytes
	out := make([]byte, begin, begin+len(plain)+tagBytes)
	copy(out, k.head)
	out[len(magic)] |= flags | p.bound
	binary.BigEndian.PutUint64(out[len(k.head):], n)
	var nonce [nonceBytes]byte
	copy(nonce[nonceBytes-countBytes:], out[len(k.head):])
	aad := p.append(append(make([]byte, 0, begin+len(p.queue)+len(p.id)+8), out...))
	return k.aead.Seal(out, nonce[:], plain, aad)
}

// room is what a seal takes beside what it seals.
func (s *sealer) room() int { return len(s.now.Load().head) + countBytes + tagBytes }

// isSealed tells what begins as if it were sealed.
func isSealed(b []byte) bool { return len(b) >= len(magic) && string(b[:len(magic)]) == magic }

// open opens what isSealed.
func (s *sealer) open(ctx context.Context, p place, b []byte) ([]byte, error) {
	flags, end, err := layout(b)
	if err != nil {
		return nil, err
	}
	k, err := s.keyOf(ctx, flags, b[len(magic)+1:end])
	if err != nil {
		return nil, err
	}
	p.bound = flags & (flagByKey | flagUnbound)
	begin := end + countBytes
	var nonce [nonceBytes]byte
	copy(nonce[nonceBytes-countBytes:], b[end:begin])
	aad := p.append(append(make([]byte, 0, begin+len(p.queue)+len(p.id)+8), b[:begin]...))
	plain, err := k.aead.Open(make([]byte, 0, len(b)-begin), nonce[:], b[begin:], aad)
	if err != nil {
		return nil, tampered("it was changed, or was sealed for another place than %s/%s", p.queue, p.id)
	}
	if flags&flagDeflated != 0 {
		return inflate(plain)
	}
	return plain, nil
}

// layout tells the flags of a seal, and where its salt ends.
func layout(b []byte) (flags byte, end int, err error) {
	short := tampered("it is cut off")
	at := len(magic) + 1
	if !isSealed(b) || len(b) < at+1 {
		return 0, 0, short
	}
	flags = b[len(magic)]
	if flags&^flagsKnown != 0 {
		return 0, 0, tampered("its form is not known; it may be of a newer version")
	}
	if end = at + idBytes; flags&flagInline != 0 {
		end = at + 1 + int(b[at]) + wrappedBytes
	}
	if end += saltBytes; len(b) < end+countBytes+tagBytes {
		return 0, 0, short
	}
	return flags, end, nil
}

// keyOf finds the key of a salt: name is what stands between flags and count.
func (s *sealer) keyOf(ctx context.Context, flags byte, name []byte) (*dataKey, error) {
	s.mu.RLock()
	k := s.opened[string(name)]
	s.mu.RUnlock()
	if k != nil {
		return k, nil
	}
	id, salt := name[:len(name)-saltBytes], name[len(name)-saltBytes:]
	var data []byte
	var err error
	switch {
	case flags&flagInline != 0:
		master := id[1 : 1+id[0]]
		data, err = s.keys.unwrap(string(master), "", id[1+len(master):])
	case s.vault == nil:
		err = tampered("its data key is in another store")
	default:
		data, err = s.vault.find(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	k = &dataKey{aead: aead(derive(data, salt, "forebay seal"))}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.opened) >= maxOpened {
		clear(s.opened)
	}
	s.opened[string(name)] = k
	return k, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}
