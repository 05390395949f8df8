package flow

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// encode writes a value of CEL as JSON: maps with their keys in order, times as RFC
// 3339, durations as 1.5s, bytes as base64.
func encode(b *bytes.Buffer, v ref.Val) error {
	if b.Len() > maxExprBytes { // a short expression may name one long value again and again
		return fmt.Errorf("it gives more than %d bytes", maxExprBytes)
	}
	switch v := v.(type) {
	case types.Null:
		b.WriteString("null")
	case types.Bool:
		b.WriteString(strconv.FormatBool(bool(v)))
	case types.Int:
		b.WriteString(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		b.WriteString(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%v is no number of JSON", f)
		}
		writeJSON(b, float64(v))
	case types.String:
		writeJSON(b, string(v))
	case types.Bytes:
		writeJSON(b, base64.StdEncoding.EncodeToString(v))
	case types.Timestamp:
		writeJSON(b, v.UTC().Format(time.RFC3339Nano))
	case types.Duration:
		writeJSON(b, v.Duration.String())
	case traits.Lister:
		return encodeList(b, v)
	case traits.Mapper:
		return encodeMap(b, v)
	default:
		return fmt.Errorf("%s cannot be written as JSON", v.Type().TypeName())
	}
	return nil
}

func encodeList(b *bytes.Buffer, v traits.Lister) error {
	b.WriteByte('[')
	for it, first := v.Iterator(), true; it.HasNext() == types.True; first = false {
		if !first {
			b.WriteByte(',')
		}
		if err := encode(b, it.Next()); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

func encodeMap(b *bytes.Buffer, v traits.Mapper) error {
	var keys []string
	for it := v.Iterator(); it.HasNext() == types.True; {
		key, ok := it.Next().(types.String)
		if !ok {
			return errors.New("a map has a key that is not a text")
		}
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	b.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		writeJSON(b, key)
		b.WriteByte(':')
		if err := encode(b, v.Get(types.String(key))); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// template is a Value that can be filled in.
type template struct {
	value    *Value
	programs map[string]*program // by source
}

// fill gives the JSON of a template.
func (t *template) fill(vars map[string]any) (json.RawMessage, error) {
	var b bytes.Buffer
	var failed error
	t.value.render(&b, func(parts []part) json.RawMessage {
		text, err := t.text(parts, vars)
		if err != nil {
			failed = errors.Join(failed, err)
			return json.RawMessage("null")
		}
		return text
	})
	return b.Bytes(), failed
}

// text is a text with expressions, or, where it is one expression, its value.
func (t *template) text(parts []part, vars map[string]any) (json.RawMessage, error) {
	var out bytes.Buffer
	if len(parts) == 1 {
		v, err := t.programs[parts[0].expr].eval(vars)
		if err == nil {
			err = encode(&out, v)
		}
		return out.Bytes(), err
	}
	var text strings.Builder
	for _, p := range parts {
		if p.expr == "" {
			text.WriteString(p.text)
			continue
		}
		v, err := t.programs[p.expr].eval(vars)
		if err != nil {
			return nil, err
		}
		if s, ok := v.(types.String); ok {
			text.WriteString(string(s))
			continue
		}
		var one bytes.Buffer
		if err := encode(&one, v); err != nil {
			return nil, err
		}
		text.WriteString(strings.Trim(one.String(), `"`))
	}
	writeJSON(&out, text.String())
	return out.Bytes(), nil
}

// string is a template whose value is a text or a number: a group, a limit key.
func (t *template) string(vars map[string]any) (string, error) {
	if t == nil {
		return "", nil
	}
	raw, err := t.fill(vars)
	if err != nil {
		return "", err
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	return string(raw), nil
}
