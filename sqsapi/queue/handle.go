package queue

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// A receipt handle is base64url of
//
//	16 bytes of HMAC-SHA-256 | 6 bytes: when it was received, ms | the engine's receipt
//
// The MAC also covers the life of the queue, so that a handle is good for its own
// queue only, and not for a later one of the same name.
const (
	handleMAC  = 16
	handleHead = handleMAC + 6
	maxHandle  = 1024
)

// signer makes and checks the handles of one queue.
type signer struct{ macs sync.Pool }

func (s *Service) newSigner(life string) *signer {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(life))
	key := m.Sum(nil)
	return &signer{macs: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

func (g *signer) sign(b []byte) []byte {
	m := g.macs.Get().(hash.Hash)
	defer g.macs.Put(m)
	m.Reset()
	m.Write(b)
	return m.Sum(nil)[:handleMAC]
}

func (g *signer) handle(r forebay.Receipt, at time.Time) string {
	b := make([]byte, handleMAC, handleHead+len(r))
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	b = append(append(b, ms[2:]...), r...)
	copy(b, g.sign(b[handleMAC:]))
	return base64.RawURLEncoding.EncodeToString(b)
}

// receipt takes a handle apart.
func (g *signer) receipt(handle string) (r forebay.Receipt, at time.Time, err error) {
	bad := fault("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
	if len(handle) > maxHandle {
		return "", at, bad
	}
	b, e := base64.RawURLEncoding.DecodeString(handle)
	if e != nil || len(b) <= handleHead || !hmac.Equal(b[:handleMAC], g.sign(b[handleMAC:])) {
		return "", at, bad
	}
	var ms [8]byte
	copy(ms[2:], b[handleMAC:handleHead])
	return forebay.Receipt(b[handleHead:]), time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))), nil
}
