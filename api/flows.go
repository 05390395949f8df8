package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
)

// Flow is a version of a flow.
type Flow struct {
	Name        string          `json:"name"`
	Version     int             `json:"version"`
	Latest      int             `json:"latest" doc:"The newest version."`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty" doc:"JSON Schema of a run's input; absent: anything."`
	Timeout     Duration        `json:"timeout,omitzero" doc:"Of a run."`
	Steps       []FlowStep      `json:"steps" nullable:"false" doc:"In the order of the file."`
	Source      string          `json:"source,omitempty" doc:"The file."`
	Layout      json.RawMessage `json:"layout,omitempty" doc:"How it is drawn: places of steps that were moved by hand, notes, groups."`
	Release     *FlowRelease    `json:"release,omitempty" doc:"Who stored this version, and who approved it."`
	FourEyes    bool            `json:"fourEyes,omitempty" doc:"A version runs only when somebody other than its author has approved it."`
	Problems    []FlowProblem   `json:"problems,omitempty" doc:"Warnings."`
}

// FlowStep is a step of a flow. Of the fields below kind those are there that it has.
type FlowStep struct {
	ID    string    `json:"id"`
	Title string    `json:"title,omitempty"`
	Kind  flow.Kind `json:"kind" enum:"use,branch,parallel,join,delay,wait,flow,emit,dead_letter"`
	Does  string    `json:"does" doc:"In words."`
	Needs []string  `json:"needs,omitempty"`
	When  string    `json:"when,omitempty"`

	Use        string     `json:"use,omitempty" doc:"The kind of its job."`
	Queue      string     `json:"queue,omitempty"`
	ForEach    string     `json:"forEach,omitempty" doc:"The list of which each item is a job."`
	Cases      []FlowCase `json:"cases,omitempty"`
	Parallel   []string   `json:"parallel,omitempty"`
	Flow       string     `json:"flow,omitempty" doc:"The flow that it runs."`
	Event      string     `json:"event,omitempty" doc:"The type that it waits for or emits."`
	Approval   bool       `json:"approval,omitempty"`
	Role       string     `json:"role,omitempty" doc:"Who is to approve, for people to read."`
	Approvers  []string   `json:"approvers,omitempty" doc:"Who may approve: keys by name or id, or their scopes; absent: whoever may change things."`
	OnFailure  string     `json:"onFailure,omitempty" doc:"fail, skip, dead_letter or goto STEP"`
	OnTimeout  string     `json:"onTimeout,omitempty"`
	Goto       []string   `json:"goto,omitempty" doc:"Where its failure or timeout leads."`
	Compensate string     `json:"compensate,omitempty" doc:"The kind of the job that undoes it."`

	Form json.RawMessage `json:"form,omitempty" doc:"JSON Schema of what an approver fills in."`
}

// FlowCase is a case of a branch.
type FlowCase struct {
	When string   `json:"when,omitempty" doc:"Absent: otherwise."`
	To   []string `json:"to" nullable:"false"`
}

// FlowInfo is a flow in a list.
type FlowInfo struct {
	Name        string `json:"name"`
	Version     int    `json:"version" doc:"The latest."`
	Description string `json:"description,omitempty"`
	Steps       int    `json:"steps"`
}

// FlowList is one page of flows, by name.
type FlowList struct {
	Items []FlowInfo `json:"items" nullable:"false"`
	Next  string     `json:"next,omitempty" doc:"after= of the next page; absent: this is the last."`
}

// PutFlow is a flow that was stored.
type PutFlow struct {
	Name     string        `json:"name"`
	Version  int           `json:"version"`
	Created  bool          `json:"created" doc:"It is new; else the latest version says the same."`
	Problems []FlowProblem `json:"problems,omitempty" doc:"Warnings."`
}

// CheckedFlow is what is wrong with a file.
type CheckedFlow struct {
	Valid    bool          `json:"valid" doc:"It could be stored: there are no problems but warnings."`
	Name     string        `json:"name,omitempty"`
	Steps    []FlowStep    `json:"steps" nullable:"false" doc:"As far as the file could be read."`
	Problems []FlowProblem `json:"problems" nullable:"false"`

	File json.RawMessage `json:"file,omitempty" doc:"The file as JSON, for forms; absent: it cannot be read."`
}

// FlowVersions are the numbers of the versions of a flow, newest first.
type FlowVersions struct {
	Items []FlowVersion `json:"items" nullable:"false"`
}

// FlowVersion is one.
type FlowVersion struct {
	Version int          `json:"version"`
	Changes []FlowChange `json:"changes" nullable:"false" doc:"What it does otherwise than the one before."`
	Release FlowRelease  `json:"release" doc:"Who stored it, and who approved it."`
}

// FlowDiff is what one version does otherwise than another.
type FlowDiff struct {
	From    int          `json:"from"`
	To      int          `json:"to" doc:"0: a file that is not stored."`
	Changes []FlowChange `json:"changes" nullable:"false"`
}

// FlowText is a file.
type FlowText struct {
	Source string `json:"source"`
}

// EditFlow sets values of a file, one after the other.
type EditFlow struct {
	Source string     `json:"source"`
	Edits  []FlowEdit `json:"edits" minItems:"1" maxItems:"100"`
}

// FlowEdit sets one.
type FlowEdit struct {
	Path  string          `json:"path" doc:"Such as steps.welcome.retry.attempts"`
	Value json.RawMessage `json:"value,omitempty" doc:"Absent: the field is taken out."`

	Rename string `json:"rename,omitempty" maxLength:"32" doc:"Of a step (the path steps.ID): its new id. All that names it follows: needs, branches, gotos, expressions."`
}

// FlowProblem is one thing that is wrong with a file, with its place and a sentence.
type FlowProblem flow.Problem

// FlowChange is one difference between two versions.
type FlowChange flow.Change

// OneFlow is a flow in a path.
type OneFlow struct {
	Name string `path:"name" maxLength:"56"`
}

const (
	yamlType        = "application/yaml"
	defaultVersions = 50
)

func (a *API) flowRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/flows", "list-flows", "List flows by name"),
		func(ctx context.Context, in *struct {
			After string `query:"after" doc:"Next of the page before."`
			Limit int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
		}) (*answer[FlowList], error) {
			return reply(a.listFlows(ctx, in.After, in.Limit))
		})
	huma.Register(h, operation(http.MethodGet, "/api/flows/{name}", "get-flow", "Show a flow with its file"),
		func(ctx context.Context, in *struct {
			OneFlow
			Version int `query:"version" minimum:"0" doc:"Absent: the latest."`
		}) (*answer[Flow], error) {
			return reply(a.getFlow(ctx, in.Name, in.Version))
		})
	huma.Register(h, operation(http.MethodGet, "/api/flows/{name}/versions", "list-flow-versions", "List the versions of a flow, newest first, and what each changed"),
		func(ctx context.Context, in *struct {
			OneFlow
			Before int `query:"before" minimum:"0" doc:"Only older ones; absent: from the latest."`
			Limit  int `query:"limit" minimum:"1" maximum:"200" default:"50"`
		}) (*answer[FlowVersions], error) {
			return reply(a.flowVersions(ctx, in.Name, in.Before, in.Limit))
		})
	huma.Register(h, operation(http.MethodGet, "/api/flows/{name}/diff", "diff-flow", "Tell what one version does otherwise than another"),
		func(ctx context.Context, in *struct {
			OneFlow
			From int `query:"from" minimum:"0" doc:"Absent: the one before to."`
			To   int `query:"to" minimum:"0" doc:"Absent: the latest."`
		}) (*answer[FlowDiff], error) {
			return reply(a.diffFlow(ctx, in.Name, in.From, in.To))
		})
	huma.Register(h, operation(http.MethodPost, "/api/flows/format", "format-flow", "Write a file the usual way"),
		func(_ context.Context, in *answer[FlowText]) (*answer[FlowText], error) {
			out, err := flow.Format([]byte(in.Body.Source))
			return reply(FlowText{string(out)}, fileError(err))
		})
	edit := operation(http.MethodPost, "/api/flows/edit", "edit-flow", "Set values of a file, and leave its comments and order")
	huma.Register(h, edit, func(_ context.Context, in *answer[EditFlow]) (*answer[FlowText], error) {
		src := []byte(in.Body.Source)
		for i, e := range in.Body.Edits {
			var err error
			if src, err = e.apply(src); err != nil {
				return reply(FlowText{}, fmt.Errorf("edits[%d]: %w", i, fileError(err)))
			}
		}
		return reply(FlowText{string(src)}, nil)
	})
	a.fileRoutes(h)
	a.releaseRoutes(h)
	a.heatRoutes(h)
	a.flowDryRoutes(h)
	a.previewRoutes(h)
	a.crossRoutes(h)
}

func (e FlowEdit) apply(src []byte) ([]byte, error) {
	if e.Rename == "" {
		return flow.Edit(src, e.Path, e.Value)
	}
	id, ok := strings.CutPrefix(e.Path, "steps.")
	if !ok || e.Value != nil {
		return nil, wrong("path", "%q cannot be renamed; steps.ID without a value can", e.Path)
	}
	return flow.Rename(src, id, e.Rename)
}

// fileRoutes are those whose bodies are files.
func (a *API) fileRoutes(h huma.API) {
	put := operation(http.MethodPut, "/api/flows/{name}", "put-flow", "Store a flow as its next version")
	put.Description = "The body is the file, YAML or JSON. Runs that go on keep the version that they began with. A file that says the same as the latest makes no new version."
	put.Parameters = []*huma.Param{pathParam("name"), queryParam("reason", "Why, for those who look at the versions.")}
	file[PutFlow](a, h, put, func(r *http.Request, src []byte) (PutFlow, error) {
		return a.putFlow(r.Context(), r.PathValue("name"), src, r.URL.Query().Get("reason"))
	})

	check := operation(http.MethodPost, "/api/flows/validate", "validate-flow", "Tell all that is wrong with a file")
	file[CheckedFlow](a, h, check, func(r *http.Request, src []byte) (CheckedFlow, error) { return a.checkFlow(r.Context(), src) })

	diff := operation(http.MethodPost, "/api/flows/{name}/diff", "diff-flow-file", "Tell what a file does otherwise than a version that is stored")
	diff.Parameters = []*huma.Param{pathParam("name"), queryParam("from", "The version; absent: the latest.")}
	file[FlowDiff](a, h, diff, func(r *http.Request, src []byte) (FlowDiff, error) { return a.diffFile(r, src) })

	schema := operation(http.MethodGet, "/api/flow-schema", "flow-schema", "The JSON Schema of a flow's file, for editors")
	document[map[string]any](h, schema, http.StatusOK, "application/schema+json")
	a.mux.HandleFunc("GET /api/flow-schema", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/schema+json")
		w.Write(flow.Schema()) // a client that has gone needs no answer
	})
}

// file registers a route whose body is a flow's file.
func file[Out any](a *API, h huma.API, op huma.Operation, serve func(*http.Request, []byte) (Out, error)) {
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		yamlType: {Schema: &huma.Schema{Type: huma.TypeString}},
	}}
	document[Out](h, op, http.StatusOK, "application/json")
	a.mux.HandleFunc(op.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) {
		src, err := readBody(w, r, flow.MaxFileBytes)
		var out Out
		if err == nil {
			out, err = serve(r, src)
		}
		if err != nil {
			problemOf(err).write(w)
			return
		}
		writeJSON(w, http.StatusOK, out)
	})
}

func noFlows() error {
	return forebay.Errorf(forebay.CodeUnsupported, "", "this server runs no flows: they need a queue that keeps jobs and documents")
}

// stepOf shows a step.
func stepOf(s *flow.Step) FlowStep {
	v := FlowStep{
		ID: s.ID, Title: s.Title, Kind: s.Kind, Does: s.Does(), Needs: s.Needs, When: s.When, Use: s.Use, Queue: s.Queue, Parallel: s.Parallel,
		Flow: s.Flow.Name, Approval: s.Wait.Approval, Role: s.Wait.Role, Approvers: s.Wait.By, Form: s.Wait.Form,
		OnFailure: s.OnFailure.String(), OnTimeout: s.OnTimeout.String(),
	}
	switch s.Kind {
	case flow.KindEmit:
		v.Event = s.Emit.Type
	case flow.KindWait:
		v.Event = s.Wait.Event
	case flow.KindJob:
		if v.Queue == "" {
			v.Queue = flow.DefaultQueue
		}
	}
	if s.ForEach != nil {
		v.ForEach = s.ForEach.In
	}
	for _, c := range s.Cases {
		v.Cases = append(v.Cases, FlowCase{c.When, append([]string{}, c.To...)})
	}
	for _, on := range []flow.OnFailure{s.OnFailure, s.OnTimeout} {
		if on.Mode == flow.Goto {
			v.Goto = append(v.Goto, on.Goto)
		}
	}
	if s.Compensate != nil {
		v.Compensate = s.Compensate.Use
	}
	return v
}

func stepsOf(d *flow.Definition) []FlowStep {
	steps := make([]FlowStep, len(d.Steps))
	for i := range d.Steps {
		steps[i] = stepOf(&d.Steps[i])
	}
	return steps
}

func flowOf(d *flow.Definition, latest int, source []byte) Flow {
	return Flow{
		Name: d.Name, Version: d.Version, Latest: latest, Description: d.Description, Input: d.Input,
		Timeout: Duration(time.Duration(d.Timeout)), Steps: stepsOf(d), Source: string(source), Layout: d.Layout,
	}
}
