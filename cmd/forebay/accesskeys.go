package main

import (
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

// accessKeys shows the access keys of SQS clients as the API does.
type accessKeys struct{ *sign.Keys }

// accessKeys are those of this server; nil: SQS is not spoken here.
func (s *server) accessKeys() api.AccessKeys {
	if s.sqs.keys == nil {
		return nil
	}
	return accessKeys{s.sqs.keys}
}

func (k accessKeys) List() ([]api.AccessKey, error) {
	var all []api.AccessKey
	for _, one := range k.Keys.List() {
		all = append(all, accessKeyOf(one))
	}
	return all, nil
}

func (k accessKeys) Add(name string, rights []api.AccessRight) (api.AccessKey, string, error) {
	spec := sign.Spec{Name: name}
	for _, r := range rights {
		spec.Rights = append(spec.Rights, sign.Right(r))
	}
	added, secret, err := k.Keys.Add(spec)
	return accessKeyOf(added), secret, err
}

func (k accessKeys) Revoke(id string) (api.AccessKey, error) {
	one, err := k.Keys.Revoke(id)
	return accessKeyOf(one), err
}

func accessKeyOf(k sign.Key) api.AccessKey {
	v := api.AccessKey{ID: k.ID, Name: k.Name, Rights: []api.AccessRight{}, CreatedAt: k.CreatedAt, RevokedAt: k.RevokedAt}
	for _, r := range k.Rights {
		v.Rights = append(v.Rights, api.AccessRight(r))
	}
	return v
}
