package sqs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// fault is what a tampering does to one request.
type fault string

const (
	none     fault = ""
	resets   fault = "reset before it is sent"
	loses    fault = "the reply is lost"
	hangs    fault = "half-open: the request is lost and nothing comes"
	stalls   fault = "half-open: it is done and nothing comes"
	throttle fault = "403 RequestThrottled"
	over     fault = "403 OverLimit"
	denied   fault = "403 AccessDenied"
	breaks   fault = "500"
	partial  fault = "some that were done are told as failed"
	blames   fault = "some that were done are told as the sender's fault"
	slow     fault = "slow"
	cut      fault = "the answer is cut"
)

// tamper makes requests to a real endpoint, and spoils some of them.
type tamper struct {
	real  *http.Client
	spoil func(action string) fault

	mu   sync.Mutex
	rng  *rand.Rand
	seen []string // actions, in order
	did  map[fault]int
}

func (ep *endpoint) tampered(seed uint64, spoil func(action string) fault) *tamper {
	return &tamper{real: ep.client, spoil: spoil, rng: rand.New(rand.NewPCG(seed, 3)), did: make(map[fault]int)}
}

func (t *tamper) CloseIdleConnections() { t.real.CloseIdleConnections() }

func (t *tamper) count(action string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.seen {
		if a == action {
			n++
		}
	}
	return n
}

func (t *tamper) Do(r *http.Request) (*http.Response, error) {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	t.mu.Lock()
	t.seen = append(t.seen, action)
	f := t.spoil(action)
	t.did[f]++
	wait := time.Duration(t.rng.Int64N(int64(8 * time.Second)))
	t.mu.Unlock()
	switch f {
	case resets:
		return nil, errors.New("connection reset by peer")
	case hangs:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case throttle:
		return answer(403, "RequestThrottled"), nil
	case over:
		return answer(403, "OverLimit"), nil
	case denied:
		return answer(403, "AccessDeniedException"), nil
	case breaks:
		return answer(500, "InternalFailure"), nil
	}
	res, err := t.real.Do(r)
	if err != nil {
		return nil, err
	}
	switch f {
	case loses:
		_ = res.Body.Close()
		return nil, errors.New("connection reset by peer")
	case stalls:
		_ = res.Body.Close()
		<-r.Context().Done()
		return nil, r.Context().Err()
	case slow:
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
		}
	case partial, blames:
		return t.lie(res, f == blames)
	case cut:
		body, _ := io.ReadAll(res.Body)
		return rebuilt(res, body[:len(body)/2]), nil
	}
	return res, nil
}

func answer(status int, shape string) *http.Response {
	body := `{"__type":"com.amazonaws.sqs#` + shape + `","message":"tampered"}`
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Query-Error": {shape + ";Sender"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func rebuilt(res *http.Response, body []byte) *http.Response {
	_ = res.Body.Close()
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("Content-Length")
	return res
}

// lie tells about half of what was done in a batch as failed.
func (t *tamper) lie(res *http.Response, sender bool) (*http.Response, error) {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var batch struct {
		Successful []map[string]any
		Failed     []map[string]any
	}
	if json.Unmarshal(body, &batch) != nil || len(batch.Successful) == 0 {
		return rebuilt(res, body), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := batch.Successful
	batch.Successful = nil
	for i, one := range all {
		if sender || i == 0 || t.rng.IntN(2) == 0 {
			code := "InternalError"
			if sender {
				code = "ReceiptHandleIsInvalid"
			}
			batch.Failed = append(batch.Failed, map[string]any{"Id": one["Id"], "Code": code, "SenderFault": sender, "Message": "tampered"})
		} else {
			batch.Successful = append(batch.Successful, one)
		}
	}
	body, err = json.Marshal(batch)
	return rebuilt(res, body), err
}

// first spoils the first n requests of an action.
func first(action string, n int, f fault) func(string) fault {
	return func(a string) fault {
		if a == action && n > 0 {
			n--
			return f
		}
		return none
	}
}
