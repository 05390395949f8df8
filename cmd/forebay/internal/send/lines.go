package send

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// line is one event of the file.
type line struct {
	line int // counted from 1
	body []byte
}

type batch struct {
	events []line
	read   int64 // bytes of the file, blank lines included
	last   bool
}

// lines reads a file in batches.
type lines struct {
	r *bufio.Reader
	n int // lines read so far
}

func newLines(r io.Reader, n int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), n: n}
}

// batch reads up to most lines and about so many bytes.
func (l *lines) batch(most, bytes int) (batch, error) {
	var b batch
	size := 0
	for len(b.events) < most && size < bytes {
		body, n, err := l.line()
		b.read += n
		if len(body) > 0 {
			size += len(body)
			b.events = append(b.events, line{l.n, body})
		}
		if errors.Is(err, io.EOF) {
			b.last = true
			return b, nil
		}
		if err != nil {
			return batch{}, err
		}
	}
	return b, nil
}

// line reads one line, without its end and outer blanks, and tells its length in
// the file.
func (l *lines) line() (body []byte, n int64, err error) {
	for {
		var part []byte
		part, err = l.r.ReadSlice('\n')
		n += int64(len(part))
		if n > maxLine {
			return nil, n, fmt.Errorf("line %d is longer than %d bytes", l.n+1, maxLine)
		}
		body = append(body, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	if n > 0 {
		l.n++
	}
	return bytes.TrimSpace(body), n, err
}

// identify gives each event that has no id one of its own.
func (b *batch) identify(file string) {
	for i := range b.events {
		e := &b.events[i]
		if !lacksID(e.body) {
			continue
		}
		sum := sha256.Sum256([]byte(file + ":" + strconv.Itoa(e.line)))
		id := `{"eventId":"` + hex.EncodeToString(sum[:16]) + `"`
		rest := bytes.TrimSpace(e.body[1:])
		if !bytes.HasPrefix(rest, []byte("}")) {
			id += ","
		}
		e.body = append([]byte(id), rest...)
	}
}

// lacksID tells whether body is one JSON object without a member eventId.
func lacksID(body []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil || name.String() == "eventId" || d.SkipValue() != nil {
			return false
		}
	}
	t, err := d.ReadToken()
	return err == nil && t.Kind() == '}' && d.InputOffset() == int64(len(body))
}

// fingerprint is the SHA-256 of a file. It is over the whole content: two files
// that begin alike must not give their events the same ids.
func fingerprint(ctx context.Context, f io.Reader) (string, int64, error) {
	h := sha256.New()
	var size int64
	for {
		if ctx.Err() != nil {
			return "", 0, context.Cause(ctx)
		}
		n, err := io.CopyN(h, f, 4<<20)
		size += n
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), size, nil
		}
		if err != nil {
			return "", 0, err
		}
	}
}
