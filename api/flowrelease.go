package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow/runner"
)

// FlowRelease is who stored a version, and who approved it. Of versions that an older
// program stored, nothing is known.
type FlowRelease runner.Release

// OneVersion is a version of a flow in a path.
type OneVersion struct {
	OneFlow
	Version int `path:"version" minimum:"1"`
}

// ReleaseFlow approves a version.
type ReleaseFlow struct {
	Comment string `json:"comment,omitempty" maxLength:"1024"`
}

// ReleasedFlow is a version that is approved.
type ReleasedFlow struct {
	Name    string      `json:"name"`
	Version int         `json:"version"`
	Release FlowRelease `json:"release"`
}

// RestoreFlow goes back to a version.
type RestoreFlow struct {
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"Why; it is kept with the version, and in the audit log."`
}

func (a *API) releaseRoutes(h huma.API) {
	release := operation(http.MethodPost, versionPath+"/release", "release-flow", "Approve a version of a flow that somebody else stored")
	release.Description = "With the setting flows.fourEyes only versions that were approved run: the latest is then the latest of them."
	huma.Register(h, release, func(ctx context.Context, in *struct {
		OneVersion
		Body *ReleaseFlow
	}) (*answer[ReleasedFlow], error) {
		comment := ""
		if in.Body != nil {
			comment = in.Body.Comment
		}
		return reply(a.releaseFlow(ctx, in.Name, in.Version, comment))
	})
	restore := operation(http.MethodPost, versionPath+"/restore", "restore-flow", "Store what a version says as the next version")
	huma.Register(h, restore, func(ctx context.Context, in *struct {
		OneVersion
		Body RestoreFlow
	}) (*answer[PutFlow], error) {
		if a.cfg.Flows == nil {
			return nil, problemOf(noFlows())
		}
		src, _, err := a.cfg.Flows.Source(ctx, in.Name, in.Version)
		if err != nil {
			return nil, problemOf(err)
		}
		return reply(a.putFlow(ctx, in.Name, src, in.Body.Reason))
	})
}

const versionPath = "/api/flows/{name}/versions/{version}"

// releaseFlow takes the word of whoever calls, who must not be the author. Without keys
// all callers are one.
func (a *API) releaseFlow(ctx context.Context, name string, number int, comment string) (ReleasedFlow, error) {
	if a.cfg.Flows == nil {
		return ReleasedFlow{}, noFlows()
	}
	before, err := a.cfg.Flows.Release(ctx, name, number)
	if err != nil {
		return ReleasedFlow{}, err
	}
	who := caller(ctx)
	if who == before.Author {
		p := newProblem(http.StatusForbidden, forebay.CodeUnauthorized, fmt.Sprintf("%s has stored version %d of the flow %s; somebody else has to approve it", who, number, name))
		p.Hint = "two people are wanted, each with a key of their own; forebay keys add makes one"
		return ReleasedFlow{}, p
	}
	release, err := a.cfg.Flows.SignOff(ctx, name, number, who, comment)
	if err != nil {
		return ReleasedFlow{}, err
	}
	a.cfg.Logger.Info("api: flow: release", "flow", name, "version", number, "author", release.Author, "by", who)
	return ReleasedFlow{name, number, FlowRelease(release)}, nil
}

func versionPathOf(name string, number int) string {
	return flowPathOf(name) + "/versions/" + strconv.Itoa(number)
}

// ReleaseFlow approves a version that somebody else stored.
func (c *Client) ReleaseFlow(ctx context.Context, name string, version int, comment string) (v ReleasedFlow, err error) {
	return v, c.call(ctx, http.MethodPost, versionPathOf(name, version)+"/release", ReleaseFlow{comment}, &v)
}

// RestoreFlow stores what a version says as the next version.
func (c *Client) RestoreFlow(ctx context.Context, name string, version int, reason string) (v PutFlow, err error) {
	return v, c.call(ctx, http.MethodPost, versionPathOf(name, version)+"/restore", RestoreFlow{reason}, &v)
}
