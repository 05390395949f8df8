package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/audit"
)

const auditPath = "/api/audit"

// AuditEntry is one change, and who made it.
type AuditEntry struct {
	Seq    int64          `json:"seq"`
	At     time.Time      `json:"at"`
	Actor  string         `json:"actor"`
	Via    string         `json:"via" enum:"api,cli,console"`
	Action string         `json:"action"`
	Target string         `json:"target,omitempty"`
	Reason string         `json:"reason,omitempty"`
	Asked  map[string]any `json:"asked,omitempty" doc:"How things were selected, and what was to become of them."`
	Done   map[string]any `json:"done,omitempty" doc:"Counts and ids, as they were answered."`
	Status int            `json:"status" doc:"Of HTTP; with 400 and more nothing was changed."`
}

// AuditList is one page of entries, newest first.
type AuditList struct {
	Items []AuditEntry `json:"items" nullable:"false"`
	Next  int64        `json:"next,omitempty" doc:"before= of the next page; absent: this is the last."`
}

// AuditFilter selects entries; zero fields select all.
type AuditFilter struct {
	Actor  string
	Action string
	Since  string // a time, or a duration back from now
}

func (a *API) auditRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, auditPath, "list-audit", "Tell who changed what, newest first; for admins"),
		func(ctx context.Context, in *struct {
			Actor  string `query:"actor" maxLength:"128" doc:"Part of the actor's name or key id."`
			Action string `query:"action" maxLength:"256" doc:"Part of the action or the target, such as /api/dead or queues/mail."`
			Since  Moment `query:"since" doc:"A time, or a duration back from now such as 24h."`
			Before int64  `query:"before" minimum:"0"`
			Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
		}) (*answer[AuditList], error) {
			since := in.Since.At
			if in.Since.In > 0 {
				since = a.cfg.Now().Add(-in.Since.In)
			}
			return reply(a.auditList(audit.Query{Actor: in.Actor, Action: in.Action, Since: since, Before: in.Before, Limit: in.Limit}))
		})
}

func (a *API) auditList(q audit.Query) (AuditList, error) {
	list := AuditList{Items: []AuditEntry{}}
	if a.cfg.Audit == nil {
		return list, forebay.Errorf(forebay.CodeUnsupported, "", "this server keeps no audit log")
	}
	entries, err := a.cfg.Audit.List(q)
	for _, e := range entries {
		list.Items = append(list.Items, AuditEntry(e))
	}
	if n := len(entries); n == q.Limit && entries[n-1].Seq > 1 {
		list.Next = entries[n-1].Seq
	}
	return list, err
}
