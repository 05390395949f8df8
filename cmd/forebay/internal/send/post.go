package send

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"
)

// answer is what the server says to a batch.
type answer struct {
	Accepted  int `json:"accepted"`
	Duplicate int `json:"duplicate"`
	Rejected  int `json:"rejected"`
	Results   []struct {
		Index   int    `json:"index"`
		Status  string `json:"status"`
		Code    string `json:"code"`
		Pointer string `json:"pointer"`
		Message string `json:"message"`
	} `json:"results"`
}

// unfit is an answer about the body itself: smaller parts of it may fit.
type unfit struct{ code, why string }

func (u *unfit) Error() string { return u.why }

// busy is an answer, or the lack of one, after which the same batch may be sent
// again.
type busy struct {
	why   string
	after time.Duration // as the server asked; 0: it did not
}

func (b *busy) Error() string { return b.why }

// maxAnswer bounds what is read of an answer; maxAfter bounds the wait that a
// server may ask for.
const (
	maxAnswer = 16 << 20
	maxAfter  = 5 * time.Minute
)

func (s *sender) post(ctx context.Context, events []line) (answer, error) {
	if err := s.compress(events); err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL+"/ingest/batch", bytes.NewReader(s.scratch.Bytes()))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Content-Encoding", "gzip")
	if s.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.cfg.Key)
	}
	resp, err := s.cfg.Client.Do(req)
	if err != nil {
		return answer{}, &busy{why: err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return answer{}, &busy{why: "the answer broke off: " + err.Error()}
	}
	return read(resp, body)
}

// compress fills scratch with the events, one per line.
func (s *sender) compress(events []line) error {
	s.scratch.Reset()
	z, err := gzip.NewWriterLevel(&s.scratch, gzip.BestSpeed)
	if err != nil {
		return err
	}
	for _, e := range events {
		if _, err := z.Write(append(e.body, '\n')); err != nil {
			return err
		}
	}
	return z.Close()
}

func read(resp *http.Response, body []byte) (answer, error) {
	var a answer
	switch code := resp.StatusCode; {
	case code == http.StatusAccepted:
		if err := json.Unmarshal(body, &a); err != nil {
			return answer{}, fmt.Errorf("the answer is not what a Forebay server says: %w", err)
		}
		return a, nil
	case code == http.StatusRequestEntityTooLarge:
		return answer{}, &unfit{"too_large", reason(body)}
	case code == http.StatusBadRequest:
		return answer{}, &unfit{"unreadable", reason(body)}
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		after := min(time.Duration(max(seconds, 0))*time.Second, maxAfter)
		return answer{}, &busy{why: fmt.Sprintf("%s: %s", resp.Status, reason(body)), after: after}
	}
	return answer{}, fmt.Errorf("the server refuses: %s: %s", resp.Status, reason(body))
}

// reason finds the words for people in an error answer.
func reason(body []byte) string {
	var p struct {
		Detail  string `json:"detail"`
		Message string `json:"message"`
		Title   string `json:"title"`
	}
	if json.Unmarshal(body, &p) == nil {
		for _, text := range []string{p.Detail, p.Message, p.Title} {
			if text != "" {
				return text
			}
		}
	}
	return string(bytes.TrimSpace(body[:min(len(body), 200)]))
}
