package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sealed"
)

// sealTimeout bounds the reading of a store's data keys.
const sealTimeout = 10 * time.Second

// sealedStores are those of this server, by name, in the order of opening.
type sealedStores []sealedStore

// dataFolder is the first of them, if it is one.
const dataFolder = "data folder"

type sealedStore struct {
	name   string
	engine *sealed.Engine
}

// masterKeys reads the keys of the settings.
func masterKeys(s *config.Settings) (*sealed.Keys, error) {
	all := make(map[string][]byte, len(s.EncryptionKeys))
	for id, k := range s.EncryptionKeys {
		text, err := k.Text()
		if err == nil {
			all[id], err = sealed.ParseKey(text)
		}
		if err != nil {
			return nil, usage(fmt.Errorf("encryptionKeys.%s: %w", id, err))
		}
	}
	keys, err := sealed.NewKeys(s.Encryption.Current, all)
	if err != nil {
		return nil, usage(err)
	}
	return keys, nil
}

// sealStore puts the seals in front of a store, where there are keys, or something in it is
// sealed. always: also else, where what comes in may be of other servers.
func sealStore(s *config.Settings, log *slog.Logger, e engine.Engine, always bool) (*sealed.Engine, error) {
	keys, err := masterKeys(s)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), sealTimeout)
	defer cancel()
	if !always && len(keys.IDs()) == 0 {
		if used, err := sealed.Used(ctx, e); !used || err != nil {
			return nil, err
		}
	}
	one, err := sealed.New(ctx, e, sealed.Config{
		Keys: keys, Plain: func(queue string) bool { return !s.Queue(bareQueue(queue)).Encrypt }, Logger: log.With("part", "encryption"),
	})
	if err != nil {
		return nil, cannotStart(err)
	}
	return one, nil
}

// bareQueue is the queue that a local one of the outbox stands for.
func bareQueue(queue string) string {
	return strings.TrimPrefix(strings.TrimPrefix(queue, "dead-"), outboxPrefix)
}

// seal puts the seals in front of a store of this server.
func (s *server) seal(name string, e engine.Engine, always bool) (engine.Engine, error) {
	one, err := sealStore(s.settings, s.log, e, always)
	if one == nil {
		return e, err
	}
	s.sealed = append(s.sealed, sealedStore{name, one})
	return one, nil
}

// box seals what is kept beside the data folder's queue; nil: it is kept as it is.
func (s *server) box() badrow.Sealer {
	if len(s.sealed) > 0 && s.sealed[0].name == dataFolder {
		return s.sealed[0].engine.Box()
	}
	return nil
}

// encryption is what the API asks; nil: nothing is sealed here, and nothing was.
func (s *server) encryption() api.Encryption {
	if len(s.settings.EncryptionKeys) == 0 {
		return nil
	}
	return s.sealed
}

// Status tells of each store.
func (all sealedStores) Status(ctx context.Context) ([]api.SealedStore, error) {
	var out []api.SealedStore
	for _, one := range all {
		st, err := one.engine.Status(ctx)
		if err != nil {
			return nil, err
		}
		v := api.SealedStore{Store: one.name, Current: st.Current, Keys: st.Keys, Carried: st.Carried, DataKeys: []api.DataKey{}, Old: st.Old}
		for _, k := range st.DataKeys {
			v.DataKeys = append(v.DataKeys, api.DataKey{ID: k.ID, Key: k.Master, Made: k.Made, Seals: k.Seals})
		}
		out = append(out, v)
	}
	return out, nil
}

// Rotate seals the data keys of each store anew.
func (all sealedStores) Rotate(ctx context.Context) ([]api.SealedStore, error) {
	rotated := make([]int, len(all))
	for i, one := range all {
		var err error
		if rotated[i], err = one.engine.Rotate(ctx, nil); err != nil && forebay.CodeOf(err) != forebay.CodeUnsupported {
			return nil, err
		}
	}
	out, err := all.Status(ctx)
	for i := range out {
		out[i].Rotated = rotated[i]
	}
	return out, err
}

// check tells of messages that wait for a key.
func (all sealedStores) check(ctx context.Context) error {
	var errs []error
	for _, one := range all {
		errs = append(errs, one.engine.Trouble(ctx))
	}
	return errors.Join(errs...)
}

type encryptionCmd struct {
	Status encryptionStatusCmd `cmd:"" default:"withargs" help:"Tell by which keys what is stored is sealed."`
	Rotate encryptionRotateCmd `cmd:"" help:"Seal all data keys by the current key, so that older ones are needed no more."`
}

type encryptionStatusCmd struct {
	serverFlags `embed:""`
}

func (c *encryptionStatusCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	all, err := client.EncryptionStatus(ctx)
	if err != nil {
		return err
	}
	return p.print(all, func(w io.Writer) { sayStores(w, all) })
}

type encryptionRotateCmd struct {
	serverFlags `embed:""`
}

func (encryptionRotateCmd) Help() string {
	return `1. Give every server the new key beside the old one (encryptionKeys.NEW.file), and restart them.
2. Make it the current one (encryption.current: NEW), and restart them. New data is sealed by it.
3. forebay encryption rotate. Take the old key away when status says that it is not needed.

Payloads are not written anew: they are sealed by data keys, and these by the key. Cut off, it is done again.`
}

func (c *encryptionRotateCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	all, err := client.RotateEncryption(ctx)
	if err != nil {
		return err
	}
	return p.print(all, func(w io.Writer) {
		for _, s := range all {
			if !s.Carried {
				fmt.Fprintf(w, "%s: %d data keys were sealed anew\n", s.Store, s.Rotated)
			}
		}
		sayStores(w, all)
	})
}

func sayStores(w io.Writer, all []api.SealedStore) {
	if len(all) == 0 {
		fmt.Fprintln(w, "nothing is sealed; set encryption.current, and encryptionKeys")
	}
	for _, s := range all {
		now := "nothing new is sealed"
		if s.Current != "" {
			now = "sealed by " + s.Current
		}
		if s.Carried {
			fmt.Fprintf(w, "%s: %s; messages carry their data keys, so a key is needed until all that it sealed has gone\n", s.Store, now)
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", s.Store, now)
		needed := map[string]int{}
		for _, k := range s.DataKeys {
			needed[k.Key]++
		}
		for _, id := range s.Keys {
			switch n := needed[id]; {
			case n > 0 && id != s.Current:
				fmt.Fprintf(w, "  %s seals %d data keys: it is needed until a rotation\n", id, n)
			case n == 0 && id != s.Current:
				fmt.Fprintf(w, "  %s is not needed\n", id)
			}
		}
	}
}
