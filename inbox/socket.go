package inbox

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
)

// closeTimeout bounds how long a client may take to agree to the end.
const closeTimeout = time.Second

var errTalk = errors.New("inbox: the client talks")

// frame is an event as a WebSocket message.
type frame struct {
	Type  string `json:"type"`
	Place string `json:"place,omitempty"`
	Data  any    `json:"data"`
}

func (b *Inbox) serveSocket(w http.ResponseWriter, r *http.Request) {
	user, after := r.PathValue("user"), r.URL.Query().Get("after")
	l, end, err := b.begin(user, after)
	if err != nil {
		problem(w, err)
		return
	}
	defer end()
	// Browsers let any page open a WebSocket with the user's cookies: Accept refuses
	// those of other origins.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: b.cfg.Origins})
	if err != nil {
		return // it has answered
	}
	// Clients say nothing here; who does is closed. Reading serves pings and the end.
	conn.SetReadLimit(1 << 10)
	gone, stop := context.WithCancelCause(context.WithoutCancel(r.Context()))
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _, err := conn.Reader(gone)
		if err == nil {
			err = errTalk
		}
		stop(err)
	}()
	defer func() { <-read }()
	defer conn.CloseNow()

	err = b.feed(gone, user, after, l, func(e event) error {
		data, err := json.Marshal(frame{e.kind, e.place, e.data})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(gone, b.cfg.Write)
		defer cancel()
		if e.kind == "ping" {
			// The protocol's own ping as well: it fails where nobody answers.
			if err := conn.Ping(ctx); err != nil {
				return err
			}
		}
		return conn.Write(ctx, websocket.MessageText, data)
	})
	// Who does not answer the goodbye is cut off: the end of gone cuts the reader.
	cut := time.AfterFunc(closeTimeout, func() { stop(nil) })
	defer cut.Stop()
	switch {
	case errors.Is(err, errClosing):
		conn.Close(websocket.StatusGoingAway, "the server is shutting down")
	case errors.Is(context.Cause(gone), errTalk):
		conn.Close(websocket.StatusPolicyViolation, "nothing is to be said here")
	default:
		conn.Close(websocket.StatusInternalError, "")
	}
}
