package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow/runner"
)

// receipt is what a receipt of the API holds.
type receipt struct {
	Receipt    forebay.Receipt `json:"r"`
	ID         string          `json:"i"`
	Queue      string          `json:"q"`
	Kind       string          `json:"k,omitempty"`
	Attempt    int             `json:"a"`
	Deliveries int             `json:"d"`
	Limits     forebay.Limits  `json:"l,omitzero"`
	Job        bool            `json:"j,omitempty"`
	Backoff    forebay.Backoff `json:"b,omitzero"`
	Owner      string          `json:"o,omitempty"`
	Sent       time.Time       `json:"s"`
	Deadline   time.Time       `json:"e,omitzero"`

	Run map[string]string `json:"f,omitempty"` // a step of a run: the headers that say so
}

// Receipts are written and known again. They are signed, so that whoever has one may
// tell progress without a key. The secret is of this process: no lease outlives it.
// To those who show a key a receipt of another process is as good.
type Receipts struct{ secret [32]byte }

// NewReceipts makes a secret.
func NewReceipts() *Receipts {
	r := new(Receipts)
	rand.Read(r.secret[:]) // never fails
	return r
}

func (rs *Receipts) signature(text string) []byte {
	mac := hmac.New(sha256.New, rs.secret[:])
	mac.Write([]byte(text)) // a hash takes all
	return mac.Sum(nil)
}

// signed tells whether a receipt is one of ours.
func (rs *Receipts) signed(text string) bool {
	text, signature, _ := strings.Cut(text, ".")
	shown, err := base64.RawURLEncoding.DecodeString(signature)
	return err == nil && hmac.Equal(shown, rs.signature(text))
}

// Of is the receipt of a delivery as the API gives it: with what it takes to
// decide about the delivery without asking for it again.
func (rs *Receipts) Of(d *forebay.Delivery) string {
	r := receipt{Receipt: d.Receipt, ID: d.ID, Queue: d.Queue, Kind: d.Kind, Attempt: d.Attempt, Deliveries: d.Deliveries, Limits: d.Limits, Sent: d.SentAt, Run: runner.StepHeaders(d.Headers)}
	if o := d.Job; o != nil {
		r.Job, r.Backoff, r.Owner, r.Deadline = true, o.Backoff, o.Owner, o.Deadline
	}
	b, _ := json.Marshal(r) // plain values, which all can be written
	text := base64.RawURLEncoding.EncodeToString(b)
	return text + "." + base64.RawURLEncoding.EncodeToString(rs.signature(text))
}

// delivery is as much of the delivery as it takes to decide what becomes of it.
func (r *receipt) delivery() forebay.Delivery {
	d := forebay.Delivery{
		Message: forebay.Message{ID: r.ID, Queue: r.Queue, Kind: r.Kind, Limits: r.Limits, Headers: r.Run},
		Receipt: r.Receipt, Attempt: r.Attempt, Deliveries: r.Deliveries, SentAt: r.Sent,
	}
	if r.Job {
		d.Job = &forebay.JobOptions{Backoff: r.Backoff, Owner: r.Owner, Deadline: r.Deadline}
	}
	return d
}

func readReceipt(text string) (receipt, error) {
	var r receipt
	text, _, _ = strings.Cut(text, ".")
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &r) != nil || r.Receipt == "" {
		return r, wrong("receipt", "this is not a receipt: it must be one as the lease gave it")
	}
	return r, nil
}

// reads is how receipts of a caller are read. What they say of their queue is believed
// of ours only, where a key holds for some.
func (a *API) reads(ctx context.Context) func(string) (receipt, error) {
	if holdsAll(ctx) {
		return readReceipt
	}
	return func(text string) (receipt, error) {
		r, err := readReceipt(text)
		switch {
		case err != nil:
		case !a.cfg.Receipts.signed(text):
			err = wrong("receipt", "this receipt is of another server; with a key that holds for some queues only, ask the one that gave it")
		default:
			err = mustHold(ctx, r.Queue)
		}
		return r, err
	}
}

func engineReceipts(held []receipt) []forebay.Receipt {
	all := make([]forebay.Receipt, len(held))
	for i := range held {
		all[i] = held[i].Receipt
	}
	return all
}

// eachReceipt reads the receipts of items and does something with those that are
// some; do gets their indexes too.
func eachReceipt[T any](items []T, of func(T) string, read func(string) (receipt, error), do func([]receipt, []int) ([]error, error)) (LeaseResults, error) {
	out := LeaseResults{Items: make([]LeaseResult, len(items))}
	held, at := make([]receipt, 0, len(items)), make([]int, 0, len(items))
	for i, item := range items {
		out.Items[i].Receipt = of(item)
		r, err := read(of(item))
		if err != nil {
			out.Items[i].Error = refusalOf(err)
			continue
		}
		held, at = append(held, r), append(at, i)
	}
	if len(held) == 0 {
		return out, nil
	}
	errs, err := do(held, at)
	if err != nil {
		return out, err
	}
	for k, err := range errs {
		switch {
		case forebay.CodeOf(err) == forebay.CodeCancelled:
			out.Items[at[k]].Cancel = true
		case err != nil:
			out.Items[at[k]].Error = refusalOf(err)
		}
	}
	return out, nil
}
