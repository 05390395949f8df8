package alert

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/monitor"
)

// Documents keep what was told, and what is muted, over restarts (broker.Broker).
type Documents interface {
	PutDocument(ctx context.Context, d engine.Document) (engine.Document, error)
	Document(ctx context.Context, collection, key string) (engine.Document, error)
}

// Config of Alerts. Read and Send are needed.
type Config struct {
	Rules []Rule
	Read  func(context.Context) ([]monitor.Reading, error) // an error may come with readings
	Send  func(context.Context, Notice) error

	Documents Documents        // nil: a restart tells everything anew
	Name      string           // under which they are kept; servers that share an engine have one each
	Every     time.Duration    // between two looks; default 15 s
	Now       func() time.Time // default time.Now
	Logger    *slog.Logger     // default: nothing is logged
}

const (
	collection  = "alerts"
	lookEvery   = 15 * time.Second
	lookTimeout = 10 * time.Second

	// MaxMute is the longest that a rule can be muted.
	MaxMute = 30 * 24 * time.Hour
)

// Alerts looks at rules. It is safe for concurrent use.
type Alerts struct {
	cfg Config

	mu      sync.Mutex // guards all below
	states  map[string]*state
	dirty   bool
	rev     int64  // of the document that was read or written last
	trouble string // of the last look, so that the same one is logged once
}

// New makes Alerts. Every problem of the rules is reported at once.
func New(cfg Config) (*Alerts, error) {
	if cfg.Read == nil || cfg.Send == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "alert: new", "a read and a send are needed")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Every <= 0 {
		cfg.Every = lookEvery
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Name == "" {
		cfg.Name = "all"
	}
	a := &Alerts{cfg: cfg, states: make(map[string]*state)}
	var problems []error
	if len(cfg.Rules) > maxRules {
		problems = append(problems, forebay.Errorf(forebay.CodeInvalid, "", "%d rules; at most %d are allowed", len(cfg.Rules), maxRules))
	}
	for i := range cfg.Rules {
		r := &cfg.Rules[i]
		problems = append(problems, r.check())
		if a.states[r.Name] != nil {
			problems = append(problems, forebay.Errorf(forebay.CodeInvalid, "", "two rules are named %q", r.Name))
		}
		a.states[r.Name] = new(state)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "alert: new", "%w", err)
	}
	return a, nil
}

// Run looks until ctx ends.
func (a *Alerts) Run(ctx context.Context) error {
	a.load(ctx, true)
	tick := time.NewTicker(a.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			a.look(ctx)
		}
	}
}

// look reads, judges and tells.
func (a *Alerts) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	a.load(ctx, false)
	readings, err := a.cfg.Read(ctx)
	err = errors.Join(err, a.judge(ctx, readings, err == nil))
	if save := a.save(ctx); forebay.CodeOf(save) != forebay.CodeConflict {
		err = errors.Join(err, save)
	}
	a.log(err)
}

func (a *Alerts) judge(ctx context.Context, readings []monitor.Reading, whole bool) error {
	now := a.cfg.Now()
	a.mu.Lock()
	var all []Notice
	for i := range a.cfg.Rules {
		r := &a.cfg.Rules[i]
		s := a.states[r.Name]
		a.dirty = s.look(r, readings, whole, now) || a.dirty
		all = append(all, s.notices(r, now)...)
	}
	a.mu.Unlock()
	var problems []error
	for i := range all {
		if err := a.cfg.Send(ctx, all[i]); err != nil { // again at the next look
			problems = append(problems, err)
			continue
		}
		a.mu.Lock()
		a.states[all[i].Rule.Name].booked(&all[i])
		a.dirty = true
		a.mu.Unlock()
	}
	return errors.Join(problems...)
}

func (a *Alerts) log(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text != "" && a.trouble == "":
		a.cfg.Logger.Warn("the alert rules cannot be looked at whole; it is tried again", "error", err)
	case text == "" && a.trouble != "":
		a.cfg.Logger.Info("the alert rules are looked at again")
	}
	a.trouble = text
}

// load takes up what an earlier process told, or only what was muted on another server
// since.
func (a *Alerts) load(ctx context.Context, all bool) {
	if a.cfg.Documents == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	d, err := a.cfg.Documents.Document(ctx, collection, a.cfg.Name)
	if err != nil {
		return // none, or out of reach: what fires is told anew
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var kept map[string]*state
	if d.Rev == a.rev || json.Unmarshal(d.Value, &kept) != nil { // the same, or of another version
		return
	}
	a.rev = d.Rev
	for name, s := range kept {
		switch {
		case s == nil || a.states[name] == nil: // its rule has gone
		case all:
			a.states[name] = s
		default:
			a.states[name].Muted, a.states[name].Reason = s.Muted, s.Reason
		}
	}
}

// save keeps the states. What cannot be kept is kept at the next look.
func (a *Alerts) save(ctx context.Context) error {
	a.mu.Lock()
	if !a.dirty || a.cfg.Documents == nil {
		a.mu.Unlock()
		return nil
	}
	value, err := json.Marshal(a.states)
	rev := a.rev
	a.dirty = false
	a.mu.Unlock()
	var d engine.Document
	if err == nil { // a conflict: another server has written, and is heard first
		d, err = a.cfg.Documents.PutDocument(ctx, engine.Document{Collection: collection, Key: a.cfg.Name, Rev: rev, Value: value})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.dirty = true
	} else {
		a.rev = d.Rev
	}
	return err
}

// Status is a rule as it stands.
type Status struct {
	Rule    Rule
	Firing  []Subject
	Pending []string
	Muted   time.Time // until when; zero: it is not
	Reason  string    // of the mute
}

// Status tells all rules, in their order.
func (a *Alerts) Status() []Status {
	now := a.cfg.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]Status, len(a.cfg.Rules))
	for i, r := range a.cfg.Rules {
		s := a.states[r.Name]
		all[i] = Status{Rule: r, Firing: sorted(s.Firing)}
		for name := range s.Pending {
			all[i].Pending = append(all[i].Pending, name)
		}
		slices.Sort(all[i].Pending)
		if now.Before(s.Muted) {
			all[i].Muted, all[i].Reason = s.Muted, s.Reason
		}
	}
	return all
}

// Mute tells nothing of a rule for a while; 0 ends a mute. It is kept when it returns.
func (a *Alerts) Mute(ctx context.Context, rule string, d time.Duration, reason string) error {
	if d < 0 || d > MaxMute {
		return forebay.Errorf(forebay.CodeInvalid, "alert: mute", "%s; 0 (no longer muted) to %s are allowed", d, MaxMute)
	}
	if len(reason) > forebay.MaxTextBytes {
		return forebay.Errorf(forebay.CodeInvalid, "alert: mute", "the reason has %d bytes; at most %d are allowed", len(reason), forebay.MaxTextBytes)
	}
	for range 5 { // others may write at the same time
		a.load(ctx, false)
		err := a.mute(ctx, rule, d, reason)
		if forebay.CodeOf(err) != forebay.CodeConflict {
			return err
		}
	}
	return forebay.Errorf(forebay.CodeConflict, "alert: mute", "other servers changed the alerts at the same time; try again")
}

func (a *Alerts) mute(ctx context.Context, rule string, d time.Duration, reason string) error {
	a.mu.Lock()
	s := a.states[rule]
	if s == nil {
		a.mu.Unlock()
		return forebay.Errorf(forebay.CodeNotFound, "alert: mute", "there is no rule %q", rule)
	}
	s.Muted, s.Reason = time.Time{}, ""
	if d > 0 {
		s.Muted, s.Reason = a.cfg.Now().Add(d), reason
	}
	a.dirty = true
	a.mu.Unlock()
	return a.save(ctx)
}
