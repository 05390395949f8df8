package config

import (
	"fmt"
	"os"
)

// Encryption settings: what is stored is sealed with the current one of some keys.
type Encryption struct {
	Current string
}

// EncryptionKey is a master key: in a file, or as it is.
type EncryptionKey struct {
	File string
	Key  string
}

func (s *Settings) encryptionTable() []*setting {
	return []*setting{
		{key: "encryption.current", value: text(&s.Encryption.Current, "", 80),
			doc: "The key of encryptionKeys that seals what is stored from now on: payloads, results, causes, progress, documents, bad rows. What other keys have sealed stays readable while they are given. Empty: nothing new is sealed."},
	}
}

func encryptionKeyTable(name string) []*setting {
	k := &EncryptionKey{}
	at := "encryptionKeys." + name + "."
	return []*setting{
		{key: at + "file", encryptionKey: k, value: text(&k.File, "", 1024),
			doc: "A file with the key: 32 bytes as base64 or in hex (openssl rand -base64 32)."},
		{key: at + "key", encryptionKey: k, secret: true, value: text(&k.Key, "", 256),
			doc: "The key itself, as LoadCredential= gives it: a credential named as this setting."},
	}
}

// Text is the key as it was written down.
func (k EncryptionKey) Text() (string, error) {
	if k.File == "" {
		return k.Key, nil
	}
	info, err := os.Stat(k.File)
	if err == nil && info.Size() > 1024 {
		err = fmt.Errorf("%s has %d bytes; that is no key", k.File, info.Size())
	}
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(k.File)
	return string(b), err
}

// finishEncryption checks what no single value can show.
func (s *Settings) finishEncryption() Problems {
	var problems Problems
	for _, one := range s.all {
		if one.encryptionKey == nil {
			continue
		}
		name, field, _ := splitNamed(groupOf("encryptionKeys"), one.key)
		s.EncryptionKeys[name] = *one.encryptionKey
		if k := one.encryptionKey; field == "file" && (k.File == "") == (k.Key == "") {
			problems = append(problems, Problem{s.placeOf("encryptionKeys." + name), "encryptionKeys." + name, "needs one of file and key"})
		}
	}
	if current := s.Encryption.Current; current != "" {
		if _, ok := s.EncryptionKeys[current]; !ok {
			one, _ := s.find("encryption.current")
			problems = append(problems, Problem{one.from, one.key, fmt.Sprintf("%q is not among encryptionKeys; give it there", current)})
		}
	}
	return problems
}
