package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/forebayhq/forebay"
)

// KeyBytes is the length of a master key and of a data key.
const KeyBytes = 32

const maxKeyID = 80

// Keys are master keys by their ids. All of them open; the current one seals.
type Keys struct {
	current string
	all     map[string]cipher.AEAD
	prints  []byte // made of the current one, for fingerprints where nothing is kept
}

// NewKeys takes master keys of KeyBytes each. current is the id of the one that seals;
// empty: none does.
func NewKeys(current string, all map[string][]byte) (*Keys, error) {
	k := &Keys{current: current, all: make(map[string]cipher.AEAD, len(all))}
	for id, secret := range all {
		if id == "" || len(id) > maxKeyID {
			return nil, forebay.Errorf(forebay.CodeInvalid, "sealed: keys", "the id %q has %d bytes; 1 to %d are allowed", id, len(id), maxKeyID)
		}
		if len(secret) != KeyBytes {
			return nil, forebay.Errorf(forebay.CodeInvalid, "sealed: keys", "the key %q has %d bytes; %d are needed", id, len(secret), KeyBytes)
		}
		k.all[id] = aead(secret)
	}
	if current == "" {
		return k, nil
	}
	if all[current] == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "sealed: keys", "the current key %q is not among the keys given (%s)", current, strings.Join(k.IDs(), ", "))
	}
	k.prints = derive(all[current], nil, "forebay fingerprints")
	return k, nil
}

// ParseKey reads a master key: KeyBytes as base64 or in hex.
func ParseKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if b, err := decode(text); err == nil && len(b) == KeyBytes {
			return b, nil
		}
	}
	return nil, forebay.Errorf(forebay.CodeInvalid, "sealed: keys", "that is no key; %d random bytes as base64 or in hex are needed (openssl rand -base64 %d)", KeyBytes, KeyBytes)
}

// Current is the id of the key that seals; empty: none does.
func (k *Keys) Current() string { return k.current }

// IDs are the ids of all keys.
func (k *Keys) IDs() []string { return slices.Sorted(maps.Keys(k.all)) }

// wrap seals a data key by the current master key. name says which one it is.
func (k *Keys) wrap(name string, data []byte) []byte {
	nonce := random(nonceBytes)
	return k.all[k.current].Seal(nonce, nonce, data, wrapAs(k.current, name))
}

// unwrap opens a data key.
func (k *Keys) unwrap(master, name string, wrapped []byte) ([]byte, error) {
	a := k.all[master]
	if a == nil {
		return nil, &noKey{master}
	}
	if len(wrapped) != wrappedBytes {
		return nil, tampered("its data key has %d bytes; %d are right", len(wrapped), wrappedBytes)
	}
	data, err := a.Open(nil, wrapped[:nonceBytes], wrapped[nonceBytes:], wrapAs(master, name))
	if err != nil {
		return nil, tampered("its data key does not open with the key %q", master)
	}
	return data, nil
}

func wrapAs(master, name string) []byte {
	return []byte("forebay data key\x00" + master + "\x00" + name)
}

// aead is AES-256-GCM. What it may fail by, the length of the key, its callers have checked.
func aead(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err == nil {
		var a cipher.AEAD
		if a, err = cipher.NewGCM(block); err == nil {
			return a
		}
	}
	panic("BUG: " + err.Error())
}

// derive makes a key of another one.
func derive(key, salt []byte, what string) []byte {
	out, err := hkdf.Key(sha256.New, key, salt, what, KeyBytes)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return out
}
