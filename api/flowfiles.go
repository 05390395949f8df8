package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
)

// fileError makes an error of problems of a file, which go out with it.
func fileError(err error) error {
	var ps flow.Problems
	if !errors.As(err, &ps) || len(ps) == 0 {
		return err
	}
	return refuseFile(ps)
}

// refuseFile says of a file that it is not sound, with all its problems.
func refuseFile(ps flow.Problems) *Problem {
	wrong := ps.Errors()
	first := wrong[0]
	text := fmt.Sprintf("the flow is not sound: line %d, column %d: %s", first.Line, first.Column, first.Text)
	if n := len(wrong) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	p := newProblem(http.StatusBadRequest, forebay.CodeInvalid, text)
	p.Field, p.Problems = first.Path, problemsOf(ps)
	return p
}

func (a *API) listFlows(ctx context.Context, after string, limit int) (FlowList, error) {
	list := FlowList{Items: []FlowInfo{}}
	if a.cfg.Flows == nil {
		return list, noFlows()
	}
	names, versions, err := a.cfg.Flows.Flows(ctx, after, limit)
	if err != nil {
		return list, err
	}
	for i, name := range names {
		if ok, err := a.holdsFlow(ctx, name, versions[i]); !ok {
			if err != nil {
				return list, err
			}
			continue
		}
		plan, err := a.cfg.Flows.Plan(ctx, name, versions[i])
		if err != nil {
			return list, err
		}
		list.Items = append(list.Items, FlowInfo{name, versions[i], plan.Description, len(plan.Steps)})
	}
	if len(names) == limit {
		list.Next = names[len(names)-1]
	}
	return list, nil
}

func (a *API) getFlow(ctx context.Context, name string, number int) (Flow, error) {
	if a.cfg.Flows == nil {
		return Flow{}, noFlows()
	}
	src, number, err := a.cfg.Flows.Source(ctx, name, number)
	if err != nil {
		return Flow{}, err
	}
	latest, err := a.cfg.Flows.Latest(ctx, name)
	if err != nil {
		return Flow{}, err
	}
	plan, err := a.cfg.Flows.Plan(ctx, name, number)
	if err != nil {
		return Flow{}, err
	}
	v := flowOf(plan.Definition, latest, src)
	_, problems := flow.Load(src, a.cfg.Known)
	v.Problems = problemsOf(problems)
	release, err := a.cfg.Flows.Release(ctx, name, number)
	v.Release, v.FourEyes = (*FlowRelease)(&release), a.cfg.Flows.FourEyes()
	return v, err
}

func (a *API) putFlow(ctx context.Context, name string, src []byte, reason string) (PutFlow, error) {
	if a.cfg.Flows == nil {
		return PutFlow{}, noFlows()
	}
	if d, _ := flow.Parse(src); d != nil && d.Name != "" && d.Name != name {
		e := wrong("flow", "the file is of the flow %q, and the path names %q", d.Name, name)
		return PutFlow{}, e
	}
	before, err := a.cfg.Flows.Latest(ctx, name)
	if err != nil && forebay.CodeOf(err) != forebay.CodeNotFound {
		return PutFlow{}, err
	}
	if before > 0 {
		err = ofFlow(&asking{a: a, ctx: ctx, path: map[string]string{"name": name}})
	} else {
		err = nil
	}
	if err == nil {
		err = a.mayWrite(ctx, src)
	}
	if err != nil {
		return PutFlow{}, err
	}
	number, problems, err := a.cfg.Flows.PutBy(ctx, src, a.cfg.Known, runner.Release{Author: caller(ctx), Reason: reason})
	if err != nil {
		return PutFlow{}, err
	}
	if len(problems.Errors()) > 0 {
		return PutFlow{}, refuseFile(problems)
	}
	v := PutFlow{Name: name, Version: number, Created: number > before, Problems: problemsOf(problems)}
	a.cfg.Logger.Info("api: flow: put", "flow", name, "version", number, "created", v.Created, "by", caller(ctx))
	return v, nil
}

// checkFlow looks at a file as putFlow would. Sub-flows that are not there yet are a
// problem of their step.
func (a *API) checkFlow(ctx context.Context, src []byte) (CheckedFlow, error) {
	if err := a.mayWrite(ctx, src); err != nil {
		return CheckedFlow{}, err
	}
	v := CheckedFlow{Steps: []FlowStep{}, Problems: []FlowProblem{}}
	v.File, _ = flow.JSON(src)
	d, _ := flow.Parse(src)
	_, problems := flow.Load(src, a.cfg.Known)
	if d != nil {
		v.Name, v.Steps = d.Name, stepsOf(d)
		missing, err := a.missingFlows(ctx, d)
		if err != nil {
			return v, err
		}
		problems = append(problems, missing...)
	}
	v.Problems = append(v.Problems, problemsOf(problems)...)
	v.Valid = len(problems.Errors()) == 0
	return v, nil
}

// missingFlows warns of sub-flows that are not stored: they may come before a run does.
func (a *API) missingFlows(ctx context.Context, d *flow.Definition) (ps flow.Problems, err error) {
	if a.cfg.Flows == nil {
		return nil, nil
	}
	for i := range d.Steps {
		s := &d.Steps[i]
		if s.Flow.Name == "" {
			continue
		}
		_, err := a.cfg.Flows.Plan(ctx, s.Flow.Name, s.Flow.Version)
		if forebay.CodeOf(err) == forebay.CodeNotFound {
			path := "steps." + s.ID + ".flow"
			at := d.Place(path)
			ps = append(ps, flow.Problem{Code: flow.CodeUnknownFlow, Warning: true, Line: at.Line, Column: at.Column, Path: path, Text: forebay.TextOf(err)})
		} else if err != nil {
			return nil, err
		}
	}
	return ps, nil
}

func (a *API) flowVersions(ctx context.Context, name string, before, limit int) (FlowVersions, error) {
	list := FlowVersions{Items: []FlowVersion{}}
	if a.cfg.Flows == nil {
		return list, noFlows()
	}
	latest, err := a.cfg.Flows.Latest(ctx, name)
	if err != nil {
		return list, err
	}
	if before > 0 {
		latest = min(latest, before-1)
	}
	for n := latest; n > 0 && len(list.Items) < limit; n-- {
		diff := FlowDiff{Changes: []FlowChange{}}
		if n > 1 {
			if diff, err = a.diffFlow(ctx, name, n-1, n); err != nil {
				return list, err
			}
		}
		release, err := a.cfg.Flows.Release(ctx, name, n)
		if err != nil {
			return list, err
		}
		list.Items = append(list.Items, FlowVersion{n, diff.Changes, FlowRelease(release)})
	}
	return list, nil
}

func (a *API) diffFlow(ctx context.Context, name string, from, to int) (FlowDiff, error) {
	if a.cfg.Flows == nil {
		return FlowDiff{}, noFlows()
	}
	b, err := a.cfg.Flows.Plan(ctx, name, to)
	if err != nil {
		return FlowDiff{}, err
	}
	if from == 0 {
		from = b.Version - 1
	}
	if from == 0 {
		return FlowDiff{}, wrong("from", "the flow %s has one version; there is none before it", name)
	}
	a1, err := a.cfg.Flows.Plan(ctx, name, from)
	if err != nil {
		return FlowDiff{}, err
	}
	return FlowDiff{from, b.Version, changesOf(a1.Definition, b.Definition)}, nil
}

func (a *API) diffFile(r *http.Request, src []byte) (FlowDiff, error) {
	if a.cfg.Flows == nil {
		return FlowDiff{}, noFlows()
	}
	from := 0
	if text := r.URL.Query().Get("from"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return FlowDiff{}, wrong("from", "%q is no version; a number from 1 is", text)
		}
		from = n
	}
	d, problems := flow.Parse(src)
	if d == nil || len(problems.Errors()) > 0 {
		return FlowDiff{}, refuseFile(problems)
	}
	before, err := a.cfg.Flows.Plan(r.Context(), r.PathValue("name"), from)
	if err != nil {
		return FlowDiff{}, err
	}
	return FlowDiff{From: before.Version, Changes: changesOf(before.Definition, d)}, nil
}

func changesOf(a, b *flow.Definition) []FlowChange {
	all := []FlowChange{}
	for _, c := range flow.Diff(a, b) {
		all = append(all, FlowChange(c))
	}
	return all
}

func problemsOf(ps flow.Problems) (all []FlowProblem) {
	for _, p := range ps {
		all = append(all, FlowProblem(p))
	}
	return all
}
