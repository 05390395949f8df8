package queue

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

func hexMD5(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

// attributesMD5 is the digest of message attributes: names in order, and of each the
// name, the type, a byte for the kind of value, and the value, with lengths before
// them. Empty: there are none.
func attributesMD5(attributes map[string]Attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var b []byte
	text := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		text(name)
		text(a.DataType)
		if isBinary(a.DataType) {
			b = append(b, 2)
			text(string(a.BinaryValue))
			continue
		}
		b = append(b, 1)
		text(*a.StringValue)
	}
	return hexMD5(b)
}

func isBinary(dataType string) bool {
	return dataType == "Binary" || strings.HasPrefix(dataType, "Binary.")
}
