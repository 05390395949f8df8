package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/audit"
	"github.com/forebayhq/forebay/keyring"
)

type keysCmd struct {
	Ls     keysLsCmd     `cmd:"" default:"withargs" help:"List keys; secrets are not kept."`
	Add    keysAddCmd    `cmd:"" help:"Add a key and print its secret, this once."`
	Rotate keysRotateCmd `cmd:"" help:"Give a key another secret and print it, this once."`
	Revoke keysRevokeCmd `cmd:"" help:"End a key at once and for good."`
}

// ring is where keys are: the running server, or the file of a data folder that no
// server uses.
type ring interface {
	Keys(ctx context.Context) ([]api.Key, error)
	AddKey(ctx context.Context, k api.NewKey) (api.AddedKey, error)
	RotateKey(ctx context.Context, id string, keep time.Duration) (api.AddedKey, error)
	RevokeKey(ctx context.Context, id string) (api.Key, error)
}

func (f serverFlags) ring(ctx context.Context, p *program) (ring, error) {
	client, err := f.client(ctx, p)
	if err == nil {
		return client, nil
	}
	if f.URL != "" || forebay.CodeOf(err) != forebay.CodeUnavailable {
		return nil, err
	}
	dir, err := f.dir(p)
	return localRing{dir}, err
}

// localRing is a data folder without a server: the first key is added before the
// first start.
type localRing struct{ dir string }

func (r localRing) with(do func(*keyring.Ring) error) error {
	if err := makeFolder(r.dir); err != nil {
		return err
	}
	ring, err := keyring.Open(filepath.Join(r.dir, keysFile), keyring.Config{})
	if err != nil {
		return err
	}
	return errors.Join(do(ring), ring.Close())
}

func (r localRing) Keys(context.Context) (all []api.Key, err error) {
	all = []api.Key{}
	err = r.with(func(ring *keyring.Ring) error {
		for _, k := range ring.List() {
			all = append(all, api.Key{Key: k, UsedToday: ring.UsedToday(k.ID)})
		}
		return nil
	})
	return all, err
}

func (r localRing) AddKey(_ context.Context, k api.NewKey) (added api.AddedKey, err error) {
	err = r.with(func(ring *keyring.Ring) (err error) {
		added.Key.Key, added.Secret, err = ring.Add(keyring.Spec(k))
		return err
	})
	if err == nil {
		err = r.note("add a key", added.Key.ID, map[string]any{"name": k.Name, "scopes": added.Key.Scopes, "queues": added.Key.Queues})
	}
	return added, err
}

// note keeps in the audit log of the folder what was done without a server.
func (r localRing) note(action, key string, asked map[string]any) error {
	l, err := audit.Open(filepath.Join(r.dir, auditFile), audit.Config{})
	if err != nil {
		return err
	}
	e := audit.Entry{Actor: fmt.Sprintf("user %d of this machine", os.Getuid()), Via: "cli", Action: action, Target: key, Asked: asked, Status: http.StatusOK}
	return errors.Join(l.Add(e), l.Close())
}

func (r localRing) RotateKey(_ context.Context, id string, keep time.Duration) (added api.AddedKey, err error) {
	err = r.with(func(ring *keyring.Ring) (err error) {
		added.Key.Key, added.Secret, err = ring.Rotate(id, keep)
		return err
	})
	if err == nil {
		err = r.note("rotate a key", id, map[string]any{"keep": keep.String()})
	}
	return added, err
}

func (r localRing) RevokeKey(_ context.Context, id string) (k api.Key, err error) {
	err = r.with(func(ring *keyring.Ring) (err error) {
		k.Key, err = ring.Revoke(id)
		return err
	})
	if err == nil {
		err = r.note("revoke a key", id, nil)
	}
	return k, err
}

type keysLsCmd struct {
	serverFlags `embed:""`
}

func (c *keysLsCmd) Run(ctx context.Context, p *program) error {
	r, err := c.ring(ctx, p)
	if err != nil {
		return err
	}
	all, err := r.Keys(ctx)
	if err != nil {
		return err
	}
	return p.print(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no keys: everyone on this machine may send and look")
			return
		}
		fmt.Fprintln(w, "id\tname\tbegins\tscopes\tqueues\trate\tquota\ttoday\tsince\tstate")
		for _, k := range all {
			state := p.paint(green, "live")
			switch {
			case !k.Live():
				state = p.paint(red, "revoked "+when(k.RevokedAt))
			case time.Now().Before(k.OldUntil):
				state += ", old secret until " + when(k.OldUntil)
			}
			fmt.Fprintf(w, "%s\t%s\t%s…\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", k.ID, k.Name, k.Prefix, scopes(k.Scopes), queuesText(k.Queues),
				limit(k.Rate, "/s"), limit(float64(k.DailyQuota), "/day"), k.UsedToday, when(k.CreatedAt), state)
		}
	})
}

func scopes(all []keyring.Scope) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = string(s)
	}
	return strings.Join(words, ",")
}

func queuesText(queues []string) string {
	if len(queues) == 0 {
		return "all"
	}
	return strings.Join(queues, ",")
}

func limit(n float64, unit string) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%g%s", n, unit)
}

type keysAddCmd struct {
	serverFlags `embed:""`
	Name        string          `arg:"" help:"What it is for: ios, web, ops."`
	Scope       []keyring.Scope `enum:"ingest,view,operate,admin,payload" default:"ingest" help:"What it may do: ingest (send events), view (see everything), operate (and change all but keys), admin (everything under /api), payload (with view or operate: see what payloads.mask hides)."`
	Role        string          `enum:"viewer,operator,admin," default:"" help:"The same in one word: viewer (view), operator (operate), admin."`
	Queues      []string        `placeholder:"NAME" help:"The queues that a viewer or operator may see and change, with * for any run of characters: mail,img-* (none: all)."`
	Secret      string          `placeholder:"TEXT" help:"Use this secret instead of a random one, such as a write key that apps in the field have."`
	Rate        float64         `help:"Events a second (0: no limit)."`
	Burst       int             `help:"Events at once (0: the rate)."`
	Daily       int64           `help:"Events a UTC day (0: no limit)."`
	Origin      []string        `placeholder:"URL" help:"Browser origin that may use it; may be repeated (none: all)."`
}

func (keysAddCmd) Help() string {
	return `Examples:
  forebay keys add ios
  forebay keys add web --rate 500 --origin https://shop.example.com
  forebay keys add ops --scope admin
  forebay keys add mailers --role operator --queues mail,newsletter-*`
}

func (c *keysAddCmd) Run(ctx context.Context, p *program) error {
	r, err := c.ring(ctx, p)
	if err != nil {
		return err
	}
	added, err := r.AddKey(ctx, api.NewKey{
		Name: c.Name, Secret: c.Secret, Scopes: c.scopes(), Queues: c.Queues, Rate: c.Rate, Burst: c.Burst, DailyQuota: c.Daily, Origins: c.Origin,
	})
	if err != nil {
		return err
	}
	return p.print(added, func(w io.Writer) {
		fmt.Fprintf(w, "%s\n", added.Secret)
		fmt.Fprintf(p.err, "key %s (%s) may %s; its secret is shown this once\n", added.Key.ID, added.Key.Name, scopes(added.Key.Scopes))
	})
}

// scopes are those that are named, one by one or by a role. Those of a role are in place of
// the default, and beside others.
func (c *keysAddCmd) scopes() []keyring.Scope {
	scope, ok := map[string]keyring.Scope{"viewer": keyring.ScopeView, "operator": keyring.ScopeOperate, "admin": keyring.ScopeAdmin}[c.Role]
	switch {
	case !ok:
		return c.Scope
	case slices.Equal(c.Scope, []keyring.Scope{keyring.ScopeIngest}), slices.Contains(c.Scope, scope):
		return []keyring.Scope{scope}
	}
	return append([]keyring.Scope{scope}, c.Scope...)
}

type keysRotateCmd struct {
	serverFlags `embed:""`
	ID          string   `arg:"" help:"Its id, as ls shows it."`
	Keep        duration `default:"0s" help:"How long the secret before stays good beside the new one, up to 30d (0s: not at all)."`
}

func (keysRotateCmd) Help() string {
	return `Examples:
  forebay keys rotate k1f0c5e2a9b3d --keep 24h    # give the new secret to all, within a day
  forebay keys rotate k1f0c5e2a9b3d               # it has leaked: the old one ends now`
}

func (c *keysRotateCmd) Run(ctx context.Context, p *program) error {
	r, err := c.ring(ctx, p)
	if err != nil {
		return err
	}
	added, err := r.RotateKey(ctx, c.ID, time.Duration(c.Keep))
	if err != nil {
		return err
	}
	return p.print(added, func(w io.Writer) {
		fmt.Fprintf(w, "%s\n", added.Secret)
		old := "the one before has ended"
		if c.Keep > 0 {
			old = "the one before is good until " + when(added.Key.OldUntil)
		}
		fmt.Fprintf(p.err, "key %s (%s) has a new secret, shown this once; %s\n", added.Key.ID, added.Key.Name, old)
	})
}

type keysRevokeCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Its id, as ls shows it."`
}

func (c *keysRevokeCmd) Run(ctx context.Context, p *program) error {
	r, err := c.ring(ctx, p)
	if err != nil {
		return err
	}
	k, err := r.RevokeKey(ctx, c.ID)
	if err != nil {
		return err
	}
	return p.print(k, func(w io.Writer) { fmt.Fprintf(w, "%s (%s) is revoked\n", k.ID, k.Name) })
}
