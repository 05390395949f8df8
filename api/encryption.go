package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
)

// Encryption tells by which keys stores are sealed, and seals their data keys anew.
type Encryption interface {
	Status(ctx context.Context) ([]SealedStore, error)
	Rotate(ctx context.Context) ([]SealedStore, error)
}

// SealedStore is a store whose payloads are sealed, or were.
type SealedStore struct {
	Store    string    `json:"store" doc:"Which one: the data folder, Redis, or SQS."`
	Current  string    `json:"current,omitempty" doc:"The key that seals what is stored now; absent: nothing new is sealed."`
	Keys     []string  `json:"keys" nullable:"false" doc:"The keys that this server has."`
	Carried  bool      `json:"carried" doc:"Each message carries its data key: nothing can be rotated, and a key is needed until all that it sealed has gone."`
	DataKeys []DataKey `json:"dataKeys" nullable:"false" doc:"The oldest first."`
	Old      int       `json:"old" doc:"Data keys that another key than the current one seals."`
	Rotated  int       `json:"rotated,omitempty" doc:"Data keys that were sealed anew by this call."`
}

// DataKey is one of those that seal what is in a store.
type DataKey struct {
	ID    string    `json:"id"`
	Key   string    `json:"key" doc:"The key that seals it."`
	Made  time.Time `json:"made"`
	Seals bool      `json:"seals" doc:"It seals what this server stores now."`
}

// SealedStoreList is all of them.
type SealedStoreList struct {
	Items []SealedStore `json:"items" nullable:"false"`
}

func (a *API) encryptionRoutes(h huma.API) {
	tell := func(ctx context.Context, ask func(Encryption, context.Context) ([]SealedStore, error)) (*answer[SealedStoreList], error) {
		if a.cfg.Encryption == nil {
			return reply(SealedStoreList{[]SealedStore{}}, nil)
		}
		all, err := ask(a.cfg.Encryption, ctx)
		return reply(SealedStoreList{append([]SealedStore{}, all...)}, err)
	}
	huma.Register(h, operation(http.MethodGet, "/api/encryption", "get-encryption", "Tell by which keys what is stored is sealed"),
		func(ctx context.Context, _ *struct{}) (*answer[SealedStoreList], error) {
			return tell(ctx, Encryption.Status)
		})
	huma.Register(h, operation(http.MethodPost, "/api/encryption/rotate", "rotate-encryption", "Seal all data keys by the current key, so that older ones are needed no more"),
		func(ctx context.Context, _ *struct{}) (*answer[SealedStoreList], error) {
			if a.cfg.Encryption == nil {
				return nil, problemOf(forebay.Errorf(forebay.CodeConflict, "", "nothing is sealed here; set encryption.current"))
			}
			a.cfg.Logger.Info("api: data keys are sealed anew", "by", caller(ctx))
			return tell(ctx, Encryption.Rotate)
		})
}

// EncryptionStatus tells by which keys what is stored is sealed.
func (c *Client) EncryptionStatus(ctx context.Context) ([]SealedStore, error) {
	var v SealedStoreList
	err := c.call(ctx, http.MethodGet, "/api/encryption", nil, &v)
	return v.Items, err
}

// RotateEncryption seals all data keys by the current key.
func (c *Client) RotateEncryption(ctx context.Context) ([]SealedStore, error) {
	var v SealedStoreList
	err := c.call(ctx, http.MethodPost, "/api/encryption/rotate", nil, &v)
	return v.Items, err
}
