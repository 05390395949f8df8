package sqs

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// counting makes requests and counts them, those that the AWS SDK repeats included.
type counting struct {
	Doer
	c *counters
}

func (d *counting) Do(r *http.Request) (*http.Response, error) {
	n := &d.c.others
	switch _, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); action {
	case "SendMessage", "SendMessageBatch":
		n = &d.c.sends
	case "ReceiveMessage":
		n = &d.c.receives
	case "DeleteMessage", "DeleteMessageBatch":
		n = &d.c.deletes
	case "ChangeMessageVisibility", "ChangeMessageVisibilityBatch":
		n = &d.c.changes
	}
	n.Add(1)
	if err := ownBody(r); err != nil {
		return nil, err
	}
	return d.Doer.Do(r)
}

// ownBody gives a request a body that is not shared with the AWS SDK. The SDK closes
// its own as soon as an answer begins to come, and where that is faster than the
// transport sees the body's end, the connection is lost in the middle of the answer.
// One that can be had again lets the transport go on when an idle connection was dead.
func ownBody(r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	if err := r.Body.Close(); err != nil {
		return err
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength = int64(len(body))
	return nil
}

// readBody reads a body into as many bytes as it says that it has.
func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength <= 0 {
		return io.ReadAll(r.Body)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}
