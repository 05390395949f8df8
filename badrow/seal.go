package badrow

import (
	"context"
	"encoding/binary"

	"github.com/forebayhq/forebay"
)

// sealRoom is what a seal takes, and the reason in it.
const sealRoom = MaxTextBytes + 256

// sealed gives rows as they are stored: where they are sealed, the reason, after its length,
// and the bytes are one, and what can be searched stays readable.
func (s *Store) sealed(rows []Row) []Row {
	if s.cfg.Seal == nil {
		return rows
	}
	out := make([]Row, len(rows))
	for i, r := range rows {
		reason, body := clip(r.Reason), r.Bytes
		whole := len(body) <= MaxRowBytes-sealRoom
		if !whole {
			body = body[:MaxRowBytes-sealRoom]
		}
		plain := append(binary.AppendUvarint(make([]byte, 0, len(reason)+len(body)+binary.MaxVarintLen64), uint64(len(reason))), reason...)
		if b, is := s.cfg.Seal.Seal(nameOf(&r), append(plain, body...)); is {
			r.Reason, r.Bytes, r.Cut = "", b, r.Cut || !whole
		}
		out[i] = r
	}
	return out
}

// nameOf is what a seal is bound to: all that is known of a row before it is stored.
func nameOf(r *Row) string { return clip(r.Code) + "\x00" + clip(r.EventID) + "\x00" + clip(r.KeyID) }

// unseal opens a row. One that does not open says so.
func (s *Store) unseal(ctx context.Context, r *Row) {
	if s.cfg.Seal == nil {
		return
	}
	plain, is, err := s.cfg.Seal.Open(ctx, nameOf(r), r.Bytes)
	if !is {
		return
	}
	n, at := binary.Uvarint(plain)
	if err == nil && (at <= 0 || n > uint64(len(plain)-at)) {
		err = forebay.Errorf(forebay.CodeDamaged, "", "it is not whole")
	}
	if err != nil {
		r.Reason, r.Bytes = "sealed, and cannot be opened: "+forebay.TextOf(err), nil
		return
	}
	r.Reason, r.Bytes = string(plain[at:at+int(n)]), plain[at+int(n):]
}
