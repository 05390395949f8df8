package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay/keyring"
)

// Key is a key as it is shown.
type Key struct {
	keyring.Key
	UsedToday int64 `json:"usedToday" doc:"Events of this UTC day."`
}

// KeyList is all keys, revoked ones too.
type KeyList struct {
	Items []Key `json:"items" nullable:"false"`
}

// NewKey says what key to add.
type NewKey struct {
	Name       string          `json:"name" minLength:"1" maxLength:"64"`
	Secret     string          `json:"secret,omitempty" doc:"Empty: a random one is made."`
	Scopes     []keyring.Scope `json:"scopes,omitempty" enum:"ingest,view,operate,admin,payload" doc:"Empty: ingest."`
	Rate       float64         `json:"rate,omitempty" minimum:"0" doc:"Events per second; 0: no limit."`
	Burst      int             `json:"burst,omitempty" minimum:"0" doc:"Events at once; 0: the rate."`
	DailyQuota int64           `json:"dailyQuota,omitempty" minimum:"0" doc:"Events per UTC day; 0: no limit."`
	Origins    []string        `json:"origins,omitempty" doc:"Browser origins that may use it; empty: all."`
	Queues     []string        `json:"queues,omitempty" doc:"The queues that it holds for, with * for any run of characters; empty: all. For view and operate only."`
}

// AddedKey is a new key with its secret, which is shown this once.
type AddedKey struct {
	Key    Key    `json:"key"`
	Secret string `json:"secret"`
}

// RotateKey says how a key gets another secret.
type RotateKey struct {
	Keep Duration `json:"keep,omitzero" doc:"How long the secret before stays good, up to 30d; absent: not at all."`
}

func (a *API) keyRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/keys", "list-keys", "List keys"),
		func(context.Context, *struct{}) (*answer[KeyList], error) {
			list := KeyList{Items: []Key{}}
			for _, k := range a.cfg.Ring.List() {
				list.Items = append(list.Items, a.keyOf(k))
			}
			return reply(list, nil)
		})
	add := operation(http.MethodPost, "/api/keys", "add-key", "Add a key")
	add.DefaultStatus = http.StatusCreated
	huma.Register(h, add, func(ctx context.Context, in *answer[NewKey]) (*answer[AddedKey], error) {
		k, secret, err := a.cfg.Ring.Add(keyring.Spec(in.Body))
		if err == nil {
			a.cfg.Logger.Info("api: key added", "key", k.ID, "name", k.Name, "scopes", k.Scopes, "by", caller(ctx))
		}
		return reply(AddedKey{a.keyOf(k), secret}, err)
	})
	huma.Register(h, operation(http.MethodPost, "/api/keys/{id}/rotate", "rotate-key", "Give a key another secret; the one before stays good for a while"),
		func(ctx context.Context, in *struct {
			ID   string `path:"id"`
			Body RotateKey
		}) (*answer[AddedKey], error) {
			k, secret, err := a.cfg.Ring.Rotate(in.ID, time.Duration(in.Body.Keep))
			if err == nil {
				a.cfg.Logger.Info("api: key rotated", "key", k.ID, "name", k.Name, "oldUntil", k.OldUntil, "by", caller(ctx))
			}
			return reply(AddedKey{a.keyOf(k), secret}, err)
		})
	huma.Register(h, operation(http.MethodDelete, "/api/keys/{id}", "revoke-key", "Revoke a key; it stops working at once"),
		func(ctx context.Context, in *struct {
			ID string `path:"id"`
		}) (*answer[Key], error) {
			k, err := a.cfg.Ring.Revoke(in.ID)
			if err == nil {
				a.cfg.Logger.Info("api: key revoked", "key", k.ID, "name", k.Name, "by", caller(ctx))
			}
			return reply(a.keyOf(k), err)
		})
}

func (a *API) keyOf(k keyring.Key) Key { return Key{k, a.cfg.Ring.UsedToday(k.ID)} }
