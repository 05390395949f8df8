package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
)

// serverFlags say which server a command talks to: the one of a data folder on
// this machine, or any by its address.
type serverFlags struct {
	Config string `short:"c" placeholder:"FILE" help:"Settings file, for its data.dir."`
	Data   string `placeholder:"DIR" help:"Data folder of a server on this machine (setting data.dir; default: data)."`
	URL    string `env:"FOREBAY_URL" placeholder:"URL" help:"Address of a server elsewhere."`
	Key    string `env:"FOREBAY_KEY" placeholder:"KEY" help:"A key for it (forebay keys add)."`
}

// target is a server and how to get in.
type target struct {
	url, key string
}

// find looks for the server. The token in the data folder is used for that very
// server only, never sent elsewhere.
func (f serverFlags) find(ctx context.Context, p *program) (target, error) {
	dir, err := f.dir(p)
	if err != nil {
		return target{}, err
	}
	local, runs := findServer(ctx, dir)
	url := strings.TrimRight(f.URL, "/")
	switch {
	case runs && (url == "" || url == local.URL):
		return target{local.URL, cmp.Or(f.Key, local.Token)}, nil
	case url != "":
		return target{url, f.Key}, nil
	}
	e := forebay.Errorf(forebay.CodeUnavailable, "", "no server runs on the data folder %s", dir)
	e.Hint = fmt.Sprintf("start one (forebay serve --data %s), or name one: --url http://host:8080 --key KEY", dir)
	return target{}, e
}

func (f serverFlags) dir(p *program) (string, error) {
	s, err := settingsFlags{Config: f.Config, Data: f.Data}.load(p)
	if err != nil {
		return "", err
	}
	return s.Data.Dir, nil
}

// callTimeout is longer than the server's own limit of a call, so that its answer
// is heard.
const callTimeout = 90 * time.Second

// client finds the server and speaks to its API.
func (f serverFlags) client(ctx context.Context, p *program) (*api.Client, error) {
	t, err := f.find(ctx, p)
	if err != nil {
		return nil, err
	}
	c, err := api.NewClient(t.url, t.key, &http.Client{Timeout: callTimeout})
	if err != nil {
		return nil, usage(err)
	}
	return c, nil
}

// pages reads a list of the API page by page, newest first, up to limit items.
func pages[T any](limit int, page func(before int64, limit int) (items []T, next int64, err error)) ([]T, error) {
	const most = 200 // of one page
	all, before := []T{}, int64(0)
	for len(all) < limit {
		items, next, err := page(before, min(limit-len(all), most))
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if next == 0 || len(items) == 0 {
			break
		}
		before = next
	}
	return all, nil
}
