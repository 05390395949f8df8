package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/catalog"
)

// Handler is what a handler says of itself.
type Handler struct {
	Queue string `json:"queue"`
	Name  string `json:"name" doc:"Of the jobs that it handles."`
	HandlerAbout
	Enforced   bool `json:"enforced,omitempty" doc:"Jobs whose data does not fit are refused when they are added."`
	Registered bool `json:"registered,omitempty" doc:"Over the API; absent: it is one of this process."`
}

// HandlerAbout is what can be said.
type HandlerAbout struct {
	Title       string          `json:"title,omitempty" maxLength:"200"`
	Description string          `json:"description,omitempty" maxLength:"4096"`
	Data        json.RawMessage `json:"data,omitempty" doc:"JSON Schema of the data of its jobs. With x-enforce true in it, jobs that do not fit are refused."`
	Result      json.RawMessage `json:"result,omitempty" doc:"JSON Schema of what it gives."`
}

// HandlerList is all of them, by queue and name.
type HandlerList struct {
	Items []Handler `json:"items" nullable:"false"`
}

// DroppedHandler is one that is not registered any more.
type DroppedHandler struct {
	Queue string `json:"queue"`
	Name  string `json:"name"`
}

// OneHandler is a handler in a path.
type OneHandler struct {
	Name    string `path:"name" maxLength:"80" doc:"Of the queue."`
	Handler string `path:"handler" maxLength:"200"`
}

func (a *API) handlerRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, handlersPath, "list-handlers", "List handlers with what they say of themselves: those of this process, and registered ones"),
		func(ctx context.Context, _ *struct{}) (*answer[HandlerList], error) {
			return reply(a.listHandlers(ctx), nil)
		})
	put := operation(http.MethodPut, handlerPath, "put-handler", "Register a handler that pulls its jobs, or that another process has")
	put.Description = "Forms are made of its schemas, and flows are checked against them. A second one of the same queue and name takes the place of the first."
	huma.Register(h, put, func(ctx context.Context, in *struct {
		OneHandler
		Body HandlerAbout
	}) (*answer[Handler], error) {
		return reply(a.putHandler(ctx, in.Name, in.Handler, in.Body))
	})
	drop := operation(http.MethodDelete, handlerPath, "delete-handler", "Take a registered handler away")
	huma.Register(h, drop, func(ctx context.Context, in *OneHandler) (*answer[DroppedHandler], error) {
		if a.cfg.Catalog == nil {
			return nil, problemOf(noCatalog())
		}
		err := a.cfg.Catalog.Drop(ctx, in.Name, in.Handler)
		if err == nil {
			a.cfg.Logger.Info("api: handler: delete", "queue", in.Name, "name", in.Handler, "by", caller(ctx))
		}
		return reply(DroppedHandler{in.Name, in.Handler}, err)
	})
}

const (
	handlersPath = "/api/handlers"
	handlerPath  = "/api/queues/{name}/handlers/{handler}"
)

func noCatalog() error {
	return forebay.Errorf(forebay.CodeUnsupported, "", "this server keeps no jobs, and so no handlers")
}

func (a *API) listHandlers(ctx context.Context) HandlerList {
	list := HandlerList{Items: []Handler{}}
	if a.cfg.Catalog == nil {
		return list
	}
	for _, e := range a.cfg.Catalog.List(ctx) {
		if holds(ctx, e.Queue) {
			list.Items = append(list.Items, handlerOf(e))
		}
	}
	return list
}

func handlerOf(e *catalog.Entry) Handler {
	return Handler{Queue: e.Queue, Name: e.Kind, HandlerAbout: HandlerAbout{e.Title, e.Description, e.Data, e.Result}, Enforced: e.Enforced(), Registered: !e.Own}
}

func (a *API) putHandler(ctx context.Context, queue, name string, in HandlerAbout) (Handler, error) {
	if a.cfg.Catalog == nil {
		return Handler{}, noCatalog()
	}
	e, err := a.cfg.Catalog.Put(ctx, catalog.Entry{Queue: queue, Kind: name, Title: in.Title, Description: in.Description, Data: in.Data, Result: in.Result})
	if err != nil {
		return Handler{}, err
	}
	a.cfg.Logger.Info("api: handler: put", "queue", queue, "name", name, "by", caller(ctx))
	return handlerOf(e), nil
}

// fits refuses a new job that its handler says it cannot take.
func (a *API) fits(ctx context.Context, m *forebay.Message) error {
	if a.cfg.Catalog == nil {
		return nil
	}
	return a.cfg.Catalog.Admit(ctx, m)
}

func handlerPathOf(queue, name string) string {
	return "/api/queues/" + url.PathEscape(queue) + "/handlers/" + url.PathEscape(name)
}

// Handlers lists handlers with what they say of themselves.
func (c *Client) Handlers(ctx context.Context) (v HandlerList, err error) {
	return v, c.call(ctx, http.MethodGet, handlersPath, nil, &v)
}

// PutHandler registers a handler.
func (c *Client) PutHandler(ctx context.Context, queue, name string, about HandlerAbout) (v Handler, err error) {
	return v, c.call(ctx, http.MethodPut, handlerPathOf(queue, name), about, &v)
}

// DeleteHandler takes a registered handler away.
func (c *Client) DeleteHandler(ctx context.Context, queue, name string) error {
	return c.call(ctx, http.MethodDelete, handlerPathOf(queue, name), nil, &DroppedHandler{})
}
