package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/stream"
)

// Workers in other languages pull: they lease jobs, extend the leases while they
// work, tell progress and settle. Leases end by themselves, so a worker that dies
// needs nobody to clean up behind it.
//
// A receipt of the API is the engine's with what the policy of retries needs to
// know, so that any server of the same store can settle.

// LeaseRequest asks for jobs of a queue.
type LeaseRequest struct {
	Max          int      `json:"max,omitempty" minimum:"0" maximum:"1000" doc:"Absent: 1."`
	Wait         Duration `json:"wait,omitzero" doc:"For the first one, where there is none; at most 50s."`
	LeaseSeconds float64  `json:"leaseSeconds,omitempty" minimum:"0" maximum:"43200" doc:"Absent: 30."`
}

// LeaseList is what was leased.
type LeaseList struct {
	Items []Lease `json:"items" nullable:"false"`
}

// Lease is one job with a worker, until its lease ends.
type Lease struct {
	Receipt    string            `json:"receipt" doc:"Names this hand-out; void once it is settled or lost."`
	JobID      string            `json:"jobId"`
	Queue      string            `json:"queue"`
	Name       string            `json:"name"`
	Data       json.RawMessage   `json:"data,omitempty"`
	DataBase64 []byte            `json:"dataBase64,omitempty" doc:"The data, where it is not JSON."`
	Headers    map[string]string `json:"headers,omitempty"`
	Attempt    int               `json:"attempt" doc:"This one's number."`
	Deliveries int               `json:"deliveries"`
	SentAt     time.Time         `json:"sentAt"`
	LeaseUntil time.Time         `json:"leaseUntil" doc:"Extend it before."`
	Deadline   time.Time         `json:"deadline,omitzero"`
	Timeout    string            `json:"timeout,omitempty" doc:"Of this attempt; the worker holds it."`
	Trace      string            `json:"trace,omitempty"`
	Tenant     string            `json:"tenant,omitempty"`
	Group      string            `json:"group,omitempty" doc:"Several of one group come in order: work on them one after the other, and when one is to be tried again, release those after it."`
	Failures   []forebay.Cause   `json:"failures,omitempty" doc:"Of earlier attempts, oldest first."`
}

// LeaseResult is what became of one receipt.
type LeaseResult struct {
	Receipt string        `json:"receipt"`
	State   forebay.State `json:"state,omitempty" doc:"Settled with retry: delayed, or dead where that was the last attempt."`
	Cancel  bool          `json:"cancel,omitempty" doc:"Somebody cancelled the job: stop, and settle it as cancelled. The lease was extended."`
	Error   *Refusal      `json:"error,omitempty"`
}

// LeaseResults has an entry for each receipt, in their order.
type LeaseResults struct {
	Items []LeaseResult `json:"items" nullable:"false"`
}

// ExtendLeases makes leases end later.
type ExtendLeases struct {
	Receipts     []string `json:"receipts" minItems:"1" maxItems:"1000"`
	LeaseSeconds float64  `json:"leaseSeconds,omitempty" minimum:"0" maximum:"43200" doc:"From now; absent: 30."`
}

// TellProgress tells how far leased jobs are.
type TellProgress struct {
	Items []ToldProgress `json:"items" minItems:"1" maxItems:"1000"`
}

// ToldProgress is of one job.
type ToldProgress struct {
	Receipt  string           `json:"receipt"`
	Progress *stream.Progress `json:"progress,omitempty"`
	Log      []LogLine        `json:"log,omitempty" maxItems:"100"`
}

func (a *API) leaseRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodPost, "/api/queues/{name}/lease", "lease-jobs", "Lease jobs of a queue, for a worker that pulls"),
		func(ctx context.Context, in *struct {
			Name string `path:"name" maxLength:"80"`
			Body LeaseRequest
		}) (*answer[LeaseList], error) {
			return reply(a.lease(ctx, in.Name, in.Body))
		})
	huma.Register(h, operation(http.MethodPost, "/api/leases/extend", "extend-leases", "Extend leases, and learn what was cancelled"),
		func(ctx context.Context, in *answer[ExtendLeases]) (*answer[LeaseResults], error) {
			return reply(a.extend(ctx, in.Body))
		})
	progress := operation(http.MethodPost, progressPath, "tell-progress", "Tell progress and write log lines of leased jobs")
	progress.MaxBodyBytes = maxBulkBody
	progress.Description = "A receipt is proof enough: no key is needed for those that this server gave out and that are live."
	huma.Register(h, progress, func(ctx context.Context, in *answer[TellProgress]) (*answer[LeaseResults], error) {
		return reply(a.tell(ctx, in.Body))
	})
	settle := operation(http.MethodPost, "/api/leases/settle", "settle-leases", "End leased jobs, each with its verdict")
	settle.MaxBodyBytes = maxBulkBody
	huma.Register(h, settle, func(ctx context.Context, in *answer[SettleLeases]) (*answer[LeaseResults], error) {
		return reply(a.settle(ctx, in.Body))
	})
}

const progressPath = "/api/leases/progress"

type unkeyed struct{} // in a context: nobody was let in, receipts must be signed

// maxUnkeyed bounds what is read from somebody whose receipt has not been seen yet.
const maxUnkeyed = 1 << 20

// withReceipt lets those in who show no key, to tell progress: targets of pushes
// have none, and the receipts in their bodies are proof enough.
func (a *API) withReceipt(keyed http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, shown := bearer(r)
		if _, refused := a.identify(r, []keyring.Scope{keyring.ScopeAdmin}); shown || refused == nil {
			keyed.ServeHTTP(w, r)
			return
		}
		body, err := readBody(w, r, maxUnkeyed)
		if err != nil {
			problemOf(err).write(w)
			return
		}
		ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), unkeyed{}, true), callTimeout)
		defer cancel()
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		a.mux.ServeHTTP(w, r.WithContext(ctx))
	})
}

// proven is nil where all receipts are from here, or whoever shows them has a key.
func (a *API) proven(ctx context.Context, in TellProgress) error {
	if ctx.Value(unkeyed{}) == nil {
		return nil
	}
	for i := range in.Items {
		if !a.cfg.Receipts.signed(in.Items[i].Receipt) {
			e := forebay.Errorf(forebay.CodeUnauthorized, "", "without an admin key, each receipt must be one that this server gave out")
			e.Field = fmt.Sprintf("items[%d].receipt", i)
			return e
		}
	}
	return nil
}

func (a *API) lease(ctx context.Context, queue string, in LeaseRequest) (LeaseList, error) {
	if time.Duration(in.Wait) > maxWait {
		return LeaseList{}, wrong("wait", "wait is %s; up to %s is allowed", time.Duration(in.Wait), maxWait)
	}
	ds, err := a.cfg.Broker.Receive(ctx, engine.Receive{
		Queue: queue, Max: max(in.Max, 1), Wait: time.Duration(in.Wait), Lease: seconds(in.LeaseSeconds),
	})
	list := LeaseList{Items: make([]Lease, len(ds))}
	for i := range ds {
		list.Items[i] = a.leaseOf(&ds[i])
	}
	return list, err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (a *API) leaseOf(d *forebay.Delivery) Lease {
	v := Lease{
		Receipt: a.cfg.Receipts.Of(d), JobID: d.ID, Queue: d.Queue, Name: d.Kind, Headers: d.Headers, Attempt: d.Attempt,
		Deliveries: d.Deliveries, SentAt: d.SentAt, LeaseUntil: d.LeaseUntil, Group: d.Group, Failures: d.Failures,
	}
	if json.Valid(d.Payload) {
		v.Data = d.Payload
	} else {
		v.DataBase64 = d.Payload
	}
	if o := d.Job; o != nil {
		v.Deadline, v.Trace, v.Tenant = o.Deadline, o.Trace, o.Tenant
		if o.Timeout > 0 {
			v.Timeout = o.Timeout.String()
		}
	}
	return v
}

func (a *API) extend(ctx context.Context, in ExtendLeases) (LeaseResults, error) {
	lease := seconds(in.LeaseSeconds)
	if lease == 0 {
		lease = forebay.DefaultLease
	}
	return eachReceipt(in.Receipts, func(s string) string { return s }, a.reads(ctx), func(held []receipt, _ []int) ([]error, error) {
		return a.cfg.Broker.Extend(ctx, engineReceipts(held), lease)
	})
}

func (a *API) tell(ctx context.Context, in TellProgress) (LeaseResults, error) {
	if err := a.proven(ctx, in); err != nil {
		return LeaseResults{}, err
	}
	now := a.cfg.Now()
	return eachReceipt(in.Items, func(p ToldProgress) string { return p.Receipt }, a.reads(ctx), func(held []receipt, at []int) ([]error, error) {
		updates := make([]forebay.ProgressUpdate, len(held))
		for i := range held {
			told := in.Items[at[i]]
			updates[i].Receipt = held[i].Receipt
			if p := told.Progress; p != nil {
				updates[i].Progress = &forebay.Progress{Stage: p.Stage, Percent: p.Percent, Message: p.Message, Data: p.Data, At: timeOr(p.At, now)}
			}
			for _, line := range told.Log {
				updates[i].Log = append(updates[i].Log, forebay.LogLine{At: timeOr(line.At, now), Text: line.Text})
			}
		}
		return a.cfg.Broker.Progress(ctx, updates)
	})
}

func timeOr(t, other time.Time) time.Time {
	if t.IsZero() {
		return other
	}
	return t
}
