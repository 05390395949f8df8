package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

type sqsCmd struct {
	Keys     sqsKeysCmd     `cmd:"" help:"Access keys of SQS clients of this server: list, add, revoke."`
	Redrive  sqsRedriveCmd  `cmd:"" help:"Send the dead letters of the queue on AWS again."`
	Redrives sqsRedrivesCmd `cmd:"" help:"Show redrives, those that ended too."`
	Cancel   sqsCancelCmd   `cmd:"" help:"End a redrive."`
}

type sqsKeysCmd struct {
	Ls     sqsKeysLsCmd     `cmd:"" default:"withargs" help:"List access keys."`
	Add    sqsKeysAddCmd    `cmd:"" help:"Add an access key and print it as AWS SDKs read it, this once."`
	Revoke sqsKeysRevokeCmd `cmd:"" help:"End an access key at once and for good."`
}

// keychain is where access keys are: the running server, or the file of a data folder
// that no server uses.
type keychain interface {
	AccessKeys(ctx context.Context) ([]api.AccessKey, error)
	AddAccessKey(ctx context.Context, k api.NewAccessKey) (api.AddedAccessKey, error)
	RevokeAccessKey(ctx context.Context, id string) (api.AccessKey, error)
}

func (f serverFlags) keychain(ctx context.Context, p *program) (keychain, error) {
	client, err := f.client(ctx, p)
	if err == nil {
		return client, nil
	}
	if f.URL != "" || forebay.CodeOf(err) != forebay.CodeUnavailable {
		return nil, err
	}
	dir, err := f.dir(p)
	return localKeychain{dir}, err
}

// localKeychain is a data folder without a server: the first key is added before the
// first start.
type localKeychain struct{ dir string }

func (c localKeychain) open() (accessKeys, error) {
	if err := makeFolder(c.dir); err != nil {
		return accessKeys{}, err
	}
	keys, err := sign.Open(filepath.Join(c.dir, accessKeysFile), sign.Config{})
	return accessKeys{keys}, err
}

func (c localKeychain) AccessKeys(context.Context) ([]api.AccessKey, error) {
	keys, err := c.open()
	if err != nil {
		return nil, err
	}
	return keys.List()
}

func (c localKeychain) AddAccessKey(_ context.Context, k api.NewAccessKey) (added api.AddedAccessKey, err error) {
	keys, err := c.open()
	if err != nil {
		return added, err
	}
	added.Key, added.Secret, err = keys.Add(k.Name, k.Rights)
	return added, err
}

func (c localKeychain) RevokeAccessKey(_ context.Context, id string) (api.AccessKey, error) {
	keys, err := c.open()
	if err != nil {
		return api.AccessKey{}, err
	}
	return keys.Revoke(id)
}

type sqsKeysLsCmd struct {
	serverFlags `embed:""`
}

func (c *sqsKeysLsCmd) Run(ctx context.Context, p *program) error {
	chain, err := c.keychain(ctx, p)
	if err != nil {
		return err
	}
	all, err := chain.AccessKeys(ctx)
	if err != nil {
		return err
	}
	return p.print(append([]api.AccessKey{}, all...), func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no access keys: SQS clients on this machine need none, others are not let in")
			return
		}
		fmt.Fprintln(w, "id\tname\tmay\tsince\tstate")
		for _, k := range all {
			state := p.paint(green, "live")
			if !k.RevokedAt.IsZero() {
				state = p.paint(red, "revoked "+when(k.RevokedAt))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, rightsText(k.Rights), when(k.CreatedAt), state)
		}
	})
}

func rightsText(all []api.AccessRight) string {
	words := make([]string, len(all))
	for i, r := range all {
		words[i] = r.Queues + ":" + strings.Join(r.Actions, ",")
	}
	return strings.Join(words, " ")
}

type sqsKeysAddCmd struct {
	serverFlags `embed:""`
	Name        string   `arg:"" help:"Who it is for: shop, worker, ci."`
	Allow       []string `sep:"none" placeholder:"QUEUES:ACTIONS" help:"What it may do: a queue's name, in which * stands for any text, and some of send,receive,manage; may be repeated (none: everything)."`
}

func (sqsKeysAddCmd) Help() string {
	return `Examples:
  forebay sqs keys add shop --allow 'orders*:send'
  forebay sqs keys add worker --allow 'orders:receive' --allow 'orders-dead:receive,send'
  forebay sqs keys add ci

A signature is checked with the secret itself, so the server keeps it: in access-keys.json
of the data folder, which its owner alone can read.`
}

func (c *sqsKeysAddCmd) Run(ctx context.Context, p *program) error {
	rights, err := parseRights(c.Allow)
	if err != nil {
		return usage(err)
	}
	chain, err := c.keychain(ctx, p)
	if err != nil {
		return err
	}
	added, err := chain.AddAccessKey(ctx, api.NewAccessKey{Name: c.Name, Rights: rights})
	if err != nil {
		return err
	}
	return p.print(added, func(w io.Writer) {
		fmt.Fprintf(w, "AWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\n", added.Key.ID, added.Secret)
		fmt.Fprintf(p.err, "%s may %s; its secret is shown this once\n", added.Key.Name, rightsText(added.Key.Rights))
	})
}

// parseRights reads queue:action,action.
func parseRights(all []string) ([]api.AccessRight, error) {
	var rights []api.AccessRight
	for _, one := range all {
		queues, actions, ok := strings.Cut(one, ":")
		if !ok || queues == "" || actions == "" {
			return nil, fmt.Errorf("--allow %s: is not QUEUES:ACTIONS, like 'orders*:send,receive'", one)
		}
		names := strings.Split(actions, ",")
		for _, name := range names {
			if _, err := sign.ParseAction(name); err != nil {
				return nil, fmt.Errorf("--allow %s: %w", one, err)
			}
		}
		rights = append(rights, api.AccessRight{Queues: queues, Actions: names})
	}
	return rights, nil
}

type sqsKeysRevokeCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Its id, as ls shows it."`
}

func (c *sqsKeysRevokeCmd) Run(ctx context.Context, p *program) error {
	chain, err := c.keychain(ctx, p)
	if err != nil {
		return err
	}
	k, err := chain.RevokeAccessKey(ctx, c.ID)
	if err != nil {
		return err
	}
	return p.print(k, func(w io.Writer) { fmt.Fprintf(w, "%s (%s) is revoked\n", k.ID, k.Name) })
}
