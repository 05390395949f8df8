package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/openworkflow"
)

// CrossedFlow is a file in the other form: a flow, or a document of Open Workflow.
type CrossedFlow struct {
	Source   string        `json:"source" doc:"Empty where problems say that it cannot be."`
	Problems []FlowProblem `json:"problems" nullable:"false" doc:"What cannot cross: as a warning where the rest holds without it. Places are those of what was sent."`
}

// crossRoutes are the bridge to Open Workflow.
func (a *API) crossRoutes(h huma.API) {
	for path, way := range map[string]struct {
		id, what string
		do       func([]byte) ([]byte, flow.Problems, error)
	}{
		"/export": {"export-flow", "Write a flow as an Open Workflow document, with what cannot cross", openworkflow.Export},
		"/import": {"import-flow", "Write an Open Workflow document as a flow, with what cannot cross", openworkflow.Import},
	} {
		huma.Register(h, operation(http.MethodPost, flowsPath+path, way.id, way.what),
			func(_ context.Context, in *answer[FlowText]) (*answer[CrossedFlow], error) {
				out, problems, err := way.do([]byte(in.Body.Source))
				var wrong flow.Problems
				if err != nil && !errors.As(err, &wrong) {
					return nil, err
				}
				return reply(CrossedFlow{string(out), append([]FlowProblem{}, problemsOf(problems)...)}, nil)
			})
	}
}
