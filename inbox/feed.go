package inbox

import (
	"context"
	"errors"
	"time"
)

// event is what a stream sends:
//
//	snapshot  {"messages":[…],"unread":n,…}   at the beginning, and after a reset: the newest ones
//	message   {"id":…,"place":…,…}            a new one
//	unread    {"unread":n}                    when that number has changed
//	reset     {}                              what the client has of before is void
//	ping      {}                              that it is alive
type event struct {
	kind  string
	place string // where to resume; empty: where it was
	data  any
}

type unreadData struct {
	Unread int `json:"unread"`
}

// sink takes events, within a deadline of its own.
type sink func(event) error

var errClosing = errors.New("inbox: closing")

// feed sends a user's inbox to a sink, from a place on (empty: with a snapshot
// first), until ctx or the inbox ends, or the sink fails.
func (b *Inbox) feed(ctx context.Context, user, after string, l *listener, send sink) error {
	f := feeder{b: b, user: user, send: send, unread: -1}
	if err := f.begin(ctx, after); err != nil {
		return err
	}
	ping := time.NewTicker(b.cfg.Ping)
	defer ping.Stop()
	for {
		select {
		case <-l.wake:
		case <-ping.C:
			if err := send(event{kind: "ping", data: struct{}{}}); err != nil {
				return err
			}
		case <-b.hub.closing:
			return errClosing
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := f.catchUp(ctx); err != nil {
			return err
		}
	}
}

type feeder struct {
	b      *Inbox
	user   string
	send   sink
	place  string
	unread int
}

func (f *feeder) begin(ctx context.Context, after string) error {
	if after == "" {
		return f.snapshot(ctx)
	}
	f.place = after
	return f.catchUp(ctx)
}

func (f *feeder) snapshot(ctx context.Context) error {
	p, err := f.b.Newest(ctx, f.user, 0)
	if err != nil {
		return err
	}
	f.place, f.unread = p.Next, p.Unread
	return f.send(event{"snapshot", p.Next, p})
}

// catchUp sends what has come since the place.
func (f *feeder) catchUp(ctx context.Context) error {
	for more := true; more; {
		p, err := f.b.After(ctx, f.user, f.place, MaxPage)
		if err != nil {
			return err
		}
		if p.Reset {
			if err := f.send(event{kind: "reset", data: struct{}{}}); err != nil {
				return err
			}
			return f.snapshot(ctx)
		}
		for _, m := range p.Messages {
			if err := f.send(event{"message", m.Place, m}); err != nil {
				return err
			}
		}
		f.place, more = p.Next, p.More
		if f.unread != p.Unread && !more {
			f.unread = p.Unread
			if err := f.send(event{kind: "unread", data: unreadData{p.Unread}}); err != nil {
				return err
			}
		}
	}
	return nil
}
