package front

import (
	"net/http"
	"strconv"
	"time"
)

// keptAnswer is how large a buffer a connection keeps for its next answer.
const keptAnswer = 4 << 10

// answer is the ResponseWriter of a connection.
type answer struct {
	conn   *conn
	header http.Header

	status   int    // 0: not told yet
	declared int    // the Content-Length that the handler stated; -1: none
	size     int    // of the body so far
	close    bool   // the connection, behind the answer
	typed    bool   // a type was stated, or must not be
	dated    bool   // so was a date
	sent     bool   // the head is on its way
	head     []byte // status line and fields as the handler set them
	body     []byte // what is not sent yet
	err      error  // of sending
	unsent   []byte // what the client has no room for, of a connection in the crowd
	at       time.Time
}

func (a *answer) begin() {
	clear(a.header)
	if cap(a.body) > keptAnswer {
		a.body, a.head = nil, nil
	}
	*a = answer{conn: a.conn, header: a.header, declared: -1, head: a.head[:0], body: a.body[:0]}
}

func (a *answer) Header() http.Header { return a.header }

// WriteHeader takes the header as it is now. Answers before the last one (1xx) are not
// sent.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 || status < http.StatusOK {
		return
	}
	a.status = status
	h := a.header
	if v, stated := h["Content-Length"]; stated {
		n, err := strconv.Atoi(v[0])
		if a.declared = n; err != nil || n < 0 || !a.bodyAllowed() {
			a.declared = -1
			delete(h, "Content-Length")
		}
	}
	_, typed := h["Content-Type"]
	a.typed = typed || h.Get("Content-Encoding") != ""
	_, a.dated = h["Date"]
	a.close = h.Get("Connection") == "close"
	text := http.StatusText(status)
	if text == "" {
		text = "status code " + strconv.Itoa(status)
	}
	a.head = append(a.head, "HTTP/1.1 "...)
	a.head = append(strconv.AppendInt(a.head, int64(status), 10), ' ')
	a.head = append(append(a.head, text...), "\r\n"...)
	_ = h.Write((*into)(&a.head)) // into memory
}

// into appends what is written.
type into []byte

func (b *into) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (b *into) WriteString(s string) (int, error) {
	*b = append(*b, s...)
	return len(s), nil
}

func (a *answer) bodyAllowed() bool {
	return a.status != http.StatusNoContent && a.status != http.StatusNotModified
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	switch {
	case a.err != nil:
		return 0, a.err
	case !a.bodyAllowed():
		return 0, http.ErrBodyNotAllowed
	case a.declared >= 0 && a.size+len(b) > a.declared:
		a.close = true
		return 0, http.ErrContentLength
	}
	a.size += len(b)
	a.body = append(a.body, b...)
	return len(b), nil
}

// FlushError sends what there is, if the length of the whole is known.
func (a *answer) FlushError() error {
	if a.declared >= 0 {
		a.send()
	}
	return a.err
}

// SetWriteDeadline is for those who flush; see http.ResponseController.
func (a *answer) SetWriteDeadline(t time.Time) error {
	a.conn.renewed = time.Time{}
	return a.conn.SetWriteDeadline(t)
}

// finish sends the answer, and tells whether the connection can go on.
func (a *answer) finish() bool {
	a.WriteHeader(http.StatusOK)
	a.send()
	return a.err == nil && !a.close && (a.declared < 0 || a.declared == a.size)
}

// send sends the head, if it was not sent before, and what there is of the body.
func (a *answer) send() {
	a.at = time.Now()
	if !a.sent {
		if a.conn.place == nil {
			a.conn.renew(a.at)
		}
		a.endHead(a.at)
	}
	if len(a.head)+len(a.body) == 0 || a.err != nil {
		return
	}
	a.head = append(a.head, a.body...)
	switch {
	case a.conn.place == nil:
		_, a.err = a.conn.Write(a.head)
	case len(a.unsent) > 0:
		a.unsent = append(a.unsent, a.head...)
	default:
		var left []byte
		left, a.err = a.conn.put(a.head)
		a.unsent = append(a.unsent, left...)
	}
	a.head, a.body = a.head[:0], a.body[:0]
}

// endHead writes what net/http would add to the header, in its order.
func (a *answer) endHead(now time.Time) {
	a.sent = true
	b := a.head
	if !a.dated {
		b = append(append(b, "Date: "...), a.conn.dateAt(now)...)
		b = append(b, "\r\n"...)
	}
	if a.declared < 0 && a.bodyAllowed() {
		b = strconv.AppendInt(append(b, "Content-Length: "...), int64(a.size), 10)
		b = append(b, "\r\n"...)
	}
	if !a.typed && a.size > 0 {
		b = append(append(b, "Content-Type: "...), http.DetectContentType(a.body)...)
		b = append(b, "\r\n"...)
	}
	if !a.close && a.conn.front.stopping.Load() {
		a.close = true
		b = append(b, "Connection: close\r\n"...)
	}
	a.head = append(b, "\r\n"...)
}
