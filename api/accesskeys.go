package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
)

// AccessKeys are the keys that SQS clients sign with. Their secrets are kept as they
// are, since a signature is checked with the secret itself.
type AccessKeys interface {
	List() ([]AccessKey, error)
	Add(name string, rights []AccessRight) (AccessKey, string, error)
	Revoke(id string) (AccessKey, error)
}

// AccessKey is an access key as it is shown.
type AccessKey struct {
	ID        string        `json:"id" doc:"AWS_ACCESS_KEY_ID of the client."`
	Name      string        `json:"name"`
	Rights    []AccessRight `json:"rights" nullable:"false"`
	CreatedAt time.Time     `json:"createdAt"`
	RevokedAt time.Time     `json:"revokedAt,omitzero"`
}

// AccessRight allows actions on the queues whose names match.
type AccessRight struct {
	Queues  string   `json:"queues" minLength:"1" maxLength:"128" doc:"A name; each * in it stands for any text."`
	Actions []string `json:"actions" minItems:"1" nullable:"false" enum:"send,receive,manage" doc:"send; receive (and delete, and change the visibility); manage (create, change, purge, remove)."`
}

// AccessKeyList is all access keys, revoked ones too.
type AccessKeyList struct {
	Items []AccessKey `json:"items" nullable:"false"`
}

// NewAccessKey says what access key to add.
type NewAccessKey struct {
	Name   string        `json:"name" minLength:"1" maxLength:"64"`
	Rights []AccessRight `json:"rights,omitempty" doc:"Empty: everything, on all queues."`
}

// AddedAccessKey is a new access key with its secret, which is shown this once.
type AddedAccessKey struct {
	Key    AccessKey `json:"key"`
	Secret string    `json:"secret" doc:"AWS_SECRET_ACCESS_KEY of the client."`
}

// noAccessKeys stands where SQS is not spoken.
type noAccessKeys struct{}

var errNoSQS = forebay.Errorf(forebay.CodeUnsupported, "", "this server does not speak SQS (sqsApi.listen is off)")

func (noAccessKeys) List() ([]AccessKey, error) { return nil, errNoSQS }

func (noAccessKeys) Add(string, []AccessRight) (AccessKey, string, error) {
	return AccessKey{}, "", errNoSQS
}

func (noAccessKeys) Revoke(string) (AccessKey, error) { return AccessKey{}, errNoSQS }

func (a *API) accessKeyRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/sqs/keys", "list-access-keys", "List the keys that SQS clients sign with"),
		func(context.Context, *struct{}) (*answer[AccessKeyList], error) {
			all, err := a.cfg.AccessKeys.List()
			return reply(AccessKeyList{Items: append([]AccessKey{}, all...)}, err)
		})
	add := operation(http.MethodPost, "/api/sqs/keys", "add-access-key", "Add a key that SQS clients sign with")
	add.DefaultStatus = http.StatusCreated
	huma.Register(h, add, func(ctx context.Context, in *answer[NewAccessKey]) (*answer[AddedAccessKey], error) {
		k, secret, err := a.cfg.AccessKeys.Add(in.Body.Name, in.Body.Rights)
		if err == nil {
			a.cfg.Logger.Info("api: access key added", "key", k.ID, "name", k.Name, "by", caller(ctx))
		}
		return reply(AddedAccessKey{k, secret}, err)
	})
	huma.Register(h, operation(http.MethodDelete, "/api/sqs/keys/{id}", "revoke-access-key", "Revoke an access key; it stops working at once"),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"64"`
		}) (*answer[AccessKey], error) {
			k, err := a.cfg.AccessKeys.Revoke(in.ID)
			if err == nil {
				a.cfg.Logger.Info("api: access key revoked", "key", k.ID, "name", k.Name, "by", caller(ctx))
			}
			return reply(k, err)
		})
}
