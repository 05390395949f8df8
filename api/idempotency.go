package api

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// The life of an Idempotency-Key:
//
//	a POST shows it      a document is put that must not be there yet: in flight,
//	                     with the hash of the request, for inFlight
//	the same again       other hash: 422. In flight: 409. Answered: the same answer
//	it is answered       the answer is put over it, then sent. One that asks to come
//	                     again (429, 5xx) frees the key instead
//	the process dies     inFlight passes, and the request may run again. Jobs that it
//	                     adds have ids made of the key, so they are not added twice
const (
	idempotencyKey  = "Idempotency-Key"
	idempotencyDocs = "idempotency"
	keptAnswer      = 24 * time.Hour
	inFlight        = callTimeout + 5*time.Second // longer than the call itself may take
	maxKeyBytes     = 255
	smallAnswer     = 16 << 10 // larger ones are kept compressed
)

// kept is a request that showed a key, and its answer.
type kept struct {
	Request string    `json:"request"` // SHA-256 of method, target and body
	Until   time.Time `json:"until,omitzero"`

	Status  int               `json:"status,omitempty"` // 0: in flight
	Header  map[string]string `json:"header,omitempty"`
	Body    []byte            `json:"body,omitempty"`
	Deflate bool              `json:"deflate,omitempty"`
	Lost    bool              `json:"lost,omitempty"` // the answer was too large to be kept
}

type derivedKey struct{}

// Idempotent lets a POST that shows an Idempotency-Key run once, and gives those that
// repeat it the same answer. It goes behind a guard, whose callers have keys of their
// own each.
func (a *API) Idempotent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys := r.Header.Values(idempotencyKey)
		if r.Method != http.MethodPost || len(keys) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		if len(keys) > 1 || !goodKey(keys[0]) {
			e := wrong(idempotencyKey, "the %s must be one of 1 to %d printable ASCII characters", idempotencyKey, maxKeyBytes)
			problemOf(e).write(w)
			return
		}
		body, err := readBody(w, r, maxBulkBody)
		if err != nil {
			problemOf(err).write(w)
			return
		}
		sum := sha256.Sum256([]byte(caller(r.Context()) + "\x00" + keys[0]))
		request := sha256.New()
		io.WriteString(request, r.Method+" "+r.URL.RequestURI()+"\n") // a hash takes all
		request.Write(body)
		once := once{
			a: a, doc: engine.Document{Collection: idempotencyDocs, Key: hex.EncodeToString(sum[:])},
			mine: kept{Request: hex.EncodeToString(request.Sum(nil))},
		}
		r = r.WithContext(context.WithValue(r.Context(), derivedKey{}, sum))
		r.Body = io.NopCloser(bytes.NewReader(body))
		once.serve(w, r, next)
	})
}

func goodKey(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return key != "" && len(key) <= maxKeyBytes
}

// deriveID makes the id of a job that has none of the idempotency key, where the
// request has one: it is the same when the request runs again.
func deriveID(ctx context.Context, m *forebay.Message, index int) bool {
	sum, ok := ctx.Value(derivedKey{}).([sha256.Size]byte)
	if !ok || m.ID != "" {
		return false
	}
	id := uuid.NewHash(sha256.New(), uuid.Nil, append(sum[:], byte(index), byte(index>>8)), 8)
	m.ID = id.String()
	return true
}

// once is one request that shows a key.
type once struct {
	a    *API
	doc  engine.Document
	mine kept
}

func (o *once) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	first, err := o.begin(r.Context())
	switch {
	case err != nil:
		problem := problemOf(err)
		if problem.Status == http.StatusConflict {
			w.Header().Set("Retry-After", "1")
		}
		if problem.Field == idempotencyKey { // for another request
			problem.Status, problem.Title = http.StatusUnprocessableEntity, http.StatusText(http.StatusUnprocessableEntity)
		}
		problem.write(w)
		return
	case first != nil:
		first.write(w)
		return
	}
	answer := &recorder{header: w.Header().Clone()}
	finished := false
	defer func() {
		if !finished { // a panic: what was done is not known
			o.free(r.Context())
		}
	}()
	next.ServeHTTP(answer, r)
	finished = true
	o.keep(r.Context(), answer)
	answer.send(w)
}

// begin claims the key, or gives the answer that it has already.
func (o *once) begin(ctx context.Context) (*kept, error) {
	for range 3 {
		now := o.a.cfg.Now()
		o.mine.Until, o.doc.Expires = now.Add(inFlight), now.Add(keptAnswer)
		stored, err := o.put(ctx)
		switch {
		case forebay.CodeOf(err) != forebay.CodeConflict:
			return nil, err
		case stored.Rev == 0: // it was freed in between
			o.doc.Rev = 0
			continue
		}
		other, err := o.claimed(stored, now)
		if other != nil || err != nil {
			return other, err
		}
		o.doc.Rev = stored.Rev // whoever ran it has died
	}
	return nil, o.underWay()
}

// claimed says what became of the request that has the key; nil: it will not end.
func (o *once) claimed(stored engine.Document, now time.Time) (*kept, error) {
	var other kept
	err := json.Unmarshal(stored.Value, &other)
	switch {
	case err != nil:
		return nil, err
	case other.Request != o.mine.Request:
		return nil, wrong(idempotencyKey, "this %s was used for another request; a key names one request only", idempotencyKey)
	case other.Lost:
		return nil, forebay.Errorf(forebay.CodeConflict, "", "the request with this %s was done; its answer was too large to be kept", idempotencyKey)
	case other.Status != 0:
		return &other, nil
	case now.Before(other.Until):
		return nil, o.underWay()
	}
	return nil, nil
}

func (o *once) underWay() error {
	return forebay.Errorf(forebay.CodeConflict, "", "the request with this %s is under way; ask again soon", idempotencyKey)
}

func (o *once) put(ctx context.Context) (engine.Document, error) {
	value, err := json.Marshal(o.mine)
	if err != nil {
		return engine.Document{}, err
	}
	d := o.doc
	d.Value = value
	stored, err := o.a.cfg.Broker.PutDocument(ctx, d)
	if err == nil {
		o.doc.Rev = stored.Rev
	}
	return stored, err
}

// keep puts the answer over the claim. What cannot be kept is sent all the same; the
// claim then ends by its time.
func (o *once) keep(ctx context.Context, answer *recorder) {
	if answer.status >= http.StatusInternalServerError || answer.status == http.StatusTooManyRequests {
		o.free(ctx)
		return
	}
	ctx, cancel := o.aside(ctx)
	defer cancel()
	o.mine = kept{Request: o.mine.Request, Status: answer.status, Body: answer.body.Bytes(), Header: map[string]string{}}
	for _, name := range []string{"Content-Type", "Location"} {
		if v := answer.header.Get(name); v != "" {
			o.mine.Header[name] = v
		}
	}
	o.mine.compress()
	if _, err := o.put(ctx); err != nil {
		o.a.cfg.Logger.Warn("api: the answer behind an idempotency key was not kept", "error", err)
	}
}

func (o *once) free(ctx context.Context) {
	ctx, cancel := o.aside(ctx)
	defer cancel()
	if err := o.a.cfg.Broker.DeleteDocument(ctx, o.doc.Collection, o.doc.Key, o.doc.Rev); err != nil {
		o.a.cfg.Logger.Warn("api: an idempotency key was not freed; it is when its time has passed", "error", err)
	}
}

// aside is for what must be written down also when the caller has gone.
func (o *once) aside(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

func (k *kept) compress() {
	if len(k.Body) > smallAnswer {
		var b bytes.Buffer
		z, _ := flate.NewWriter(&b, flate.BestSpeed) // the level is a good one
		z.Write(k.Body)                              // into memory
		z.Close()
		k.Body, k.Deflate = b.Bytes(), true
	}
	if len(k.Body) > engine.MaxDocumentBytes*3/4-4096 { // in base64, with the rest
		*k = kept{Request: k.Request, Status: k.Status, Lost: true}
	}
}

func (k *kept) write(w http.ResponseWriter) {
	body := k.Body
	if k.Deflate {
		var err error
		if body, err = io.ReadAll(flate.NewReader(bytes.NewReader(body))); err != nil {
			problemOf(forebay.Errorf(forebay.CodeDamaged, "api: idempotency", "the kept answer cannot be read: %w", err)).write(w)
			return
		}
	}
	for name, value := range k.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Idempotent-Replayed", "true")
	w.WriteHeader(k.Status)
	w.Write(body) // a client that has gone needs no answer
}

// recorder holds an answer back until it is kept.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

func (r *recorder) send(w http.ResponseWriter) {
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.WriteHeader(max(r.status, http.StatusOK))
	w.Write(r.body.Bytes()) // a client that has gone needs no answer
}
