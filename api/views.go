package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/keyring"
)

// Bounds of saved views.
const (
	maxOwnViews    = 50 // of one key
	maxSharedViews = 100
	viewsPath      = "/api/views"
)

const viewCollection = "views"

// NewView is a way to look at a list: its filters, as the console's address has them.
type NewView struct {
	Screen string `json:"screen" enum:"jobs,dead,bad,history" doc:"The list."`
	Name   string `json:"name" minLength:"1" maxLength:"64" doc:"One that is there is replaced."`
	Query  string `json:"query" maxLength:"2000" example:"q=state:dead" doc:"What follows the ? in its address."`
	Shared bool   `json:"shared,omitempty" doc:"For everybody; else for whoever shows this key. To share is for operators."`
}

// View is one that was saved.
type View struct {
	ID string `json:"id"`
	NewView
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// ViewList are the views that somebody sees: their own first, then the shared ones, by name.
type ViewList struct {
	Items []View `json:"items" nullable:"false"`
}

func (a *API) viewRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, viewsPath, "list-views", "List saved views: one's own and the shared ones"),
		func(ctx context.Context, in *struct {
			Screen string `query:"screen" enum:"jobs,dead,bad,history"`
		}) (*answer[ViewList], error) {
			return reply(a.listViews(ctx, in.Screen))
		})
	huma.Register(h, operation(http.MethodPost, viewsPath, "save-view", "Save a view, or replace it"),
		func(ctx context.Context, in *answer[NewView]) (*answer[View], error) {
			return reply(a.saveView(ctx, in.Body))
		})
	huma.Register(h, operation(http.MethodDelete, viewsPath+"/{id}", "delete-view", "Delete a saved view: one's own, or, for operators, a shared one"),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"64"`
		}) (*answer[View], error) {
			return reply(a.deleteView(ctx, in.ID))
		})
}

// keepsViews tells a change of views, which is for viewers too, as long as they are their own.
func keepsViews(r *http.Request) bool {
	return r.URL.Path == viewsPath || strings.HasPrefix(r.URL.Path, viewsPath+"/")
}

func hashed(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// Views of one caller lie beside each other, as the shared ones do.
const sharedViews = "shared-"

func ownViews(ctx context.Context) string { return "own-" + hashed(caller(ctx)) + "-" }

// mustShare refuses what concerns everybody to whoever only looks, and to keys that hold for
// some queues: what others look for names other queues.
func mustShare(ctx context.Context) error {
	if !holdsAll(ctx) {
		return notHeld(ctx, "views that all share")
	}
	if let, ok := ctx.Value(letKey{}).(func([]keyring.Scope) error); ok {
		return let(changers)
	}
	return nil
}

// viewsOf are the views whose ids begin with one text; there are at most so many.
func (a *API) viewsOf(ctx context.Context, prefix string, most int) ([]View, error) {
	var all []View
	for after := prefix; len(all) < most; {
		docs, err := a.cfg.Broker.Documents(ctx, viewCollection, after, most)
		if err != nil || len(docs) == 0 {
			return all, err
		}
		for i := range docs {
			if !strings.HasPrefix(docs[i].Key, prefix) {
				return all, nil
			}
			v, err := viewOf(&docs[i])
			if err != nil {
				return nil, err
			}
			all = append(all, v)
			after = docs[i].Key
		}
	}
	return all, nil
}

func viewOf(d *engine.Document) (View, error) {
	var v View
	err := json.Unmarshal(d.Value, &v)
	if err != nil {
		err = forebay.Errorf(forebay.CodeDamaged, "api: view", "the saved view %s is not readable: %w", d.Key, err)
	}
	v.ID = d.Key
	return v, err
}

func (a *API) listViews(ctx context.Context, screen string) (ViewList, error) {
	list := ViewList{Items: []View{}}
	own, err := a.viewsOf(ctx, ownViews(ctx), maxOwnViews)
	if err != nil {
		return list, err
	}
	var shared []View
	if holdsAll(ctx) {
		if shared, err = a.viewsOf(ctx, sharedViews, maxSharedViews); err != nil {
			return list, err
		}
	}
	for _, some := range [][]View{own, shared} {
		slices.SortFunc(some, func(x, y View) int { return cmp.Compare(x.Name, y.Name) })
		for _, v := range some {
			if screen == "" || v.Screen == screen {
				list.Items = append(list.Items, v)
			}
		}
	}
	return list, nil
}

func (a *API) saveView(ctx context.Context, in NewView) (View, error) {
	if _, err := url.ParseQuery(in.Query); err != nil {
		return View{}, wrong("query", "it is no query of an address: %v", err)
	}
	if in.Name = strings.TrimSpace(in.Name); in.Name == "" {
		return View{}, wrong("name", "the name is empty; 1 to 64 characters are allowed")
	}
	prefix, most := ownViews(ctx), maxOwnViews
	if in.Shared {
		if err := mustShare(ctx); err != nil {
			return View{}, err
		}
		prefix, most = sharedViews, maxSharedViews
	}
	v := View{ID: prefix + hashed(in.Screen, in.Name), NewView: in, By: caller(ctx), At: a.cfg.Now().UTC()}
	value, err := json.Marshal(v)
	if err != nil {
		return View{}, err
	}
	a.views.Lock() // so that two at once do not go over the bound
	defer a.views.Unlock()
	there, err := a.viewsOf(ctx, prefix, most)
	if err != nil {
		return View{}, err
	}
	if len(there) >= most && !slices.ContainsFunc(there, func(w View) bool { return w.ID == v.ID }) {
		return View{}, forebay.Errorf(forebay.CodeFull, "", "there are %d views already, the most that are kept; delete one", most)
	}
	_, err = a.cfg.Broker.PutDocument(ctx, engine.Document{Collection: viewCollection, Key: v.ID, Rev: engine.AnyRev, Value: value})
	return v, err
}

func (a *API) deleteView(ctx context.Context, id string) (View, error) {
	gone := forebay.Errorf(forebay.CodeNotFound, "", "there is no saved view %q", id)
	switch {
	case strings.HasPrefix(id, sharedViews):
		if err := mustShare(ctx); err != nil {
			return View{}, err
		}
	case !strings.HasPrefix(id, ownViews(ctx)):
		return View{}, gone
	}
	d, err := a.cfg.Broker.Document(ctx, viewCollection, id)
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		return View{}, gone
	}
	if err != nil {
		return View{}, err
	}
	v, err := viewOf(&d)
	if forebay.CodeOf(err) == forebay.CodeDamaged {
		err = nil // it goes all the same
	}
	if err == nil {
		err = a.cfg.Broker.DeleteDocument(ctx, viewCollection, id, engine.AnyRev)
	}
	return v, err
}
