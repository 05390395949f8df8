package sealed

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Where a store wants text or JSON, a seal is base64 behind one of these words.
const (
	textMark  = "forebay-sealed:"
	causeMark = "sealed "
)

// cannotOpen is what people see in the place of a text that does not open.
const cannotOpen = "(sealed, and cannot be opened here)"

// fit seals plain in no more than most bytes, compressed if it must be; nil: it does not fit.
func (s *sealer) fit(p place, plain []byte, most int) []byte {
	if len(plain)+s.room() <= most {
		return s.seal(p, plain, 0)
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err == nil {
		_, _ = w.Write(plain) // to memory
		err = w.Close()
	}
	if err != nil || b.Len()+s.room() > most {
		return nil
	}
	return s.seal(p, b.Bytes(), flagDeflated)
}

// maxPlain bounds what a seal may be inflated to: more was never sealed.
const maxPlain = 4 << 20

func inflate(b []byte) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), maxPlain+1))
	if err != nil || len(out) > maxPlain {
		return nil, tampered("what was compressed in it cannot be read")
	}
	return out, nil
}

// text seals plain as text of no more than most bytes; empty: it does not fit.
func (s *sealer) text(p place, plain []byte, most int) string {
	b := s.fit(p, plain, base64.RawURLEncoding.DecodedLen(most-len(textMark)))
	if b == nil {
		return ""
	}
	return textMark + base64.RawURLEncoding.EncodeToString(b)
}

// openText opens text. was: it is as it was, since it is not sealed.
func (s *sealer) openText(ctx context.Context, p place, text string) (plain []byte, was bool, err error) {
	rest, ok := strings.CutPrefix(text, textMark)
	if !ok {
		return nil, true, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil {
		return nil, false, tampered("it is no base64")
	}
	plain, err = s.open(ctx, p, b)
	return plain, false, err
}

// value seals JSON as JSON: a string.
func (s *sealer) value(p place, plain []byte, most int) []byte {
	text := s.text(p, plain, most-2)
	if text == "" {
		return nil
	}
	return []byte(`"` + text + `"`)
}

// openValue opens JSON; what cannot be opened stays.
func (s *sealer) openValue(ctx context.Context, p place, v []byte) []byte {
	if plain, ok := s.opensValue(ctx, p, v); ok {
		return plain
	}
	return v
}

// isValue tells JSON that is sealed.
func isValue(v []byte) bool { return bytes.HasPrefix(v, []byte(`"`+textMark)) }

func (s *sealer) opensValue(ctx context.Context, p place, v []byte) (plain []byte, ok bool) {
	if !isValue(v) {
		return nil, false
	}
	plain, was, err := s.openText(ctx, p, strings.TrimSuffix(string(v[1:]), `"`))
	return plain, !was && err == nil
}

// said is what is sealed of a cause.
type said struct {
	Message string            `json:"m,omitempty"`
	Detail  map[string]string `json:"d,omitempty"`
}

// cause seals what a cause says. Causes with one text have one mark before the seal, so that
// engine.DeadFingerprint groups them as it would without seals.
func (s *sealer) cause(p place, c forebay.Cause) forebay.Cause {
	if c.Message == "" && len(c.Detail) == 0 {
		return c
	}
	plain, err := json.Marshal(said{c.Message, c.Detail})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	p.what = isCause
	c.Message = causeMark + s.mark(engine.CauseText(c.Message)) + " '" + base64.RawURLEncoding.EncodeToString(s.seal(p, plain, 0)) + "'"
	c.Detail = nil
	return c
}

// mark is a word of letters that stands for a text.
func (s *sealer) mark(text string) string {
	b := binary.BigEndian.AppendUint64(nil, s.print(2, xxhash.Sum64String(text)))
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, 'a'+c>>4, 'a'+c&15)
	}
	return string(out)
}

// print is a fingerprint that tells nothing to who has no key.
func (s *sealer) print(use byte, sum uint64) uint64 {
	var b [16]byte
	b[0] = use
	binary.BigEndian.PutUint64(b[8:], sum)
	s.prints.Encrypt(b[:], b[:])
	return max(binary.BigEndian.Uint64(b[:]), 1)
}

// openCause opens what a cause says.
func (s *sealer) openCause(ctx context.Context, p place, c *forebay.Cause) {
	rest, ok := strings.CutPrefix(c.Message, causeMark)
	_, rest, quoted := strings.Cut(rest, " '")
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimSuffix(rest, "'"))
	if !ok || !quoted || err != nil || !isSealed(b) {
		return
	}
	p.what = isCause
	plain, err := s.open(ctx, p, b)
	var w said
	if err == nil {
		err = json.Unmarshal(plain, &w)
	}
	if err != nil {
		w = said{Message: cannotOpen}
	}
	c.Message, c.Detail = w.Message, w.Detail
}

// openCauses gives causes opened. Those given are not changed.
func (s *sealer) openCauses(ctx context.Context, p place, all []forebay.Cause) []forebay.Cause {
	if len(all) == 0 {
		return all
	}
	out := append([]forebay.Cause(nil), all...)
	for i := range out {
		s.openCause(ctx, p, &out[i])
	}
	return out
}

// progress seals what a progress says: the message, after its length, and the data. nil: it
// does not fit.
func (s *sealer) progress(p place, g forebay.Progress) *forebay.Progress {
	if g.Message == "" && len(g.Data) == 0 {
		return &g
	}
	p.what = isProgress
	plain := append(binary.AppendUvarint(nil, uint64(len(g.Message))), g.Message...)
	g.Data, g.Message = s.value(p, append(plain, g.Data...), forebay.MaxProgressBytes), ""
	if g.Data == nil {
		return nil
	}
	return &g
}

// openProgress opens what a progress says.
func (s *sealer) openProgress(ctx context.Context, p place, g *forebay.Progress) {
	if !isValue(g.Data) {
		return
	}
	p.what = isProgress
	plain, ok := s.opensValue(ctx, p, g.Data)
	n, at := binary.Uvarint(plain)
	if !ok || at <= 0 || n > uint64(len(plain)-at) {
		g.Message = cannotOpen
		return
	}
	g.Message, g.Data = string(plain[at:at+int(n)]), nil
	if rest := plain[at+int(n):]; len(rest) > 0 {
		g.Data = rest
	}
}
