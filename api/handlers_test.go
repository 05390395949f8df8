package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/catalog"
	"github.com/forebayhq/forebay/flow"
)

// A handler that pulls says what it takes: it is listed, a flow that gives it something
// else is not sound, and so is a job.
func TestAHandlerIsRegisteredAndFlowsAndJobsAreHeldAgainstIt(t *testing.T) {
	t.Parallel()
	var c *catalog.Catalog
	s := start(t, func(cfg *api.Config) {
		c = must[*catalog.Catalog](t)(catalog.New(catalog.Config{Documents: cfg.Broker, Own: []catalog.Entry{{Queue: "work", Kind: "own"}}}))
		cfg.Catalog = c
		cfg.Known = flow.Known{}
		cfg.Known.Data = func(queue, kind string, data []byte, unknown []string) []flow.Misfit {
			return c.Data(t.Context(), queue, kind, data, unknown)
		}
	})
	ctx := t.Context()
	about := api.HandlerAbout{Title: "Say hello", Data: json.RawMessage(`{"type":"object","required":["to"],"properties":{"to":{"type":"string"},"cc":{"items":{"type":"number"}}},"x-enforce":true}`)}
	got := must[api.Handler](t)(s.PutHandler(ctx, "mail", "welcome", about))
	list := must[api.HandlerList](t)(s.Handlers(ctx)).Items
	if len(list) != 2 || !list[0].Enforced || !list[0].Registered || list[0].Title != "Say hello" || list[1].Name != "own" || list[1].Registered || !got.Enforced {
		t.Errorf("handlers: %+v", list)
	}
	checked := must[api.CheckedFlow](t)(s.CheckFlow(ctx, []byte("flow: a\nsteps:\n  hello: {use: welcome, queue: mail, with: {to: 7}}\n")))
	if checked.Valid || len(checked.Problems) != 1 || checked.Problems[0].Code != flow.CodeData || checked.Problems[0].Path != "steps.hello.with.to" {
		t.Errorf("checked: %+v", checked.Problems)
	}
	_, err := s.AddJob(ctx, api.NewJob{Queue: "mail", Name: "welcome", Data: json.RawMessage(`{"to":7}`)}, "")
	if forebay.CodeOf(err) != forebay.CodeInvalid || strings.Count(err.Error(), "got number, want string") != 1 {
		t.Errorf("a job that does not fit: %v", err)
	}
	r := s.do(t, "POST", "/api/jobs", `{"queue":"mail","name":"welcome","data":{"to":7,"cc":["x"]}}`, nil)
	if want := (api.Wrong{In: "body", Pointer: "/data/cc/0", Message: "got string, want number"}); len(r.problem.Errors) != 2 || !slices.Contains(r.problem.Errors, want) {
		t.Errorf("two things do not fit: %+v", r.problem)
	}
	bulk := must[api.BulkAdded](t)(s.AddJobs(ctx, []api.NewJob{{Queue: "mail", Name: "welcome", Data: json.RawMessage(`{}`)}, {Queue: "mail", Name: "welcome", Data: json.RawMessage(`{"to":"ann"}`)}}, ""))
	if bad := bulk.Items[0]; bulk.Added != 1 || bulk.Failed != 1 || bad.AddedJob != nil || bad.Error.Field != "data" || !strings.Contains(bad.Error.Message, `missing property 'to'`) {
		t.Errorf("two at once: %+v", bulk)
	}
	if _, err := s.PutHandler(ctx, "work", "own", about); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("a handler of this process: %v", err)
	}
	if err := s.DeleteHandler(ctx, "mail", "welcome"); err != nil {
		t.Error(err)
	}
	if err := s.DeleteHandler(ctx, "mail", "welcome"); forebay.CodeOf(err) != forebay.CodeNotFound {
		t.Errorf("deleted twice: %v", err)
	}
}
