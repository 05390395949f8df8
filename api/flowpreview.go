package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
)

// PreviewFlow asks what an expression of a step would give, and what it may use.
type PreviewFlow struct {
	Source     string                     `json:"source"`
	Step       string                     `json:"step,omitempty" doc:"Whose it is; absent: of the flow's output."`
	Expression string                     `json:"expression,omitempty" maxLength:"4096" doc:"CEL, as in when."`
	Value      json.RawMessage            `json:"value,omitempty" doc:"Or data with ${expressions} in it, as in with."`
	Input      json.RawMessage            `json:"input,omitempty" doc:"A sample of the run's input."`
	Outputs    map[string]json.RawMessage `json:"outputs,omitempty" doc:"By step, a sample of what it gives."`
	Item       json.RawMessage            `json:"item,omitempty" doc:"A sample of an item of a for_each."`
	Event      json.RawMessage            `json:"event,omitempty" doc:"A sample of an event that is waited for."`
}

// FlowPreview is the answer.
type FlowPreview struct {
	Names []FlowName      `json:"names" nullable:"false" doc:"What an expression there may use."`
	Value json.RawMessage `json:"value,omitempty" doc:"What it would give."`
	Error string          `json:"error,omitempty" doc:"Why it would give nothing."`
}

// FlowName is something that an expression may use.
type FlowName flow.Name

func (a *API) previewRoutes(h huma.API) {
	op := operation(http.MethodPost, flowsPath+"/preview", "preview-flow", "Tell what an expression of a step would give for a sample, and what it may use")
	op.MaxBodyBytes = maxJobBody
	huma.Register(h, op, func(ctx context.Context, in *answer[PreviewFlow]) (*answer[FlowPreview], error) {
		if err := a.mayWrite(ctx, []byte(in.Body.Source)); err != nil {
			return nil, problemOf(err)
		}
		return reply(a.previewFlow(&in.Body))
	})
}

func (a *API) previewFlow(in *PreviewFlow) (FlowPreview, error) {
	v := FlowPreview{Names: []FlowName{}}
	d, err := flow.NewDraft([]byte(in.Source), a.cfg.Known, in.Step)
	if err != nil {
		return v, fileError(err)
	}
	sample := flow.Sample{Input: in.Input, Outputs: in.Outputs, Item: in.Item, Event: in.Event}
	for _, n := range d.Names(sample) {
		v.Names = append(v.Names, FlowName(n))
	}
	switch {
	case in.Expression != "":
		v.Value, err = d.Expression(in.Expression, sample)
	case in.Value != nil:
		v.Value, err = d.Value(in.Value, sample)
	}
	if err != nil {
		v.Value, v.Error = nil, forebay.TextOf(err)
	}
	return v, nil
}

// PreviewFlow asks what an expression of a file would give.
func (c *Client) PreviewFlow(ctx context.Context, in PreviewFlow) (v FlowPreview, err error) {
	return v, c.call(ctx, http.MethodPost, flowsPath+"/preview", in, &v)
}
