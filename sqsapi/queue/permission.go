package queue

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// policy is the part of an access policy that AddPermission writes. Policies are
// stored and given back; nobody evaluates them.
type policy struct {
	Version    string            `json:"Version"`
	ID         string            `json:"Id,omitempty"`
	Statements []json.RawMessage `json:"Statement"`
}

type statement struct {
	Sid       string               `json:"Sid"`
	Effect    string               `json:"Effect"`
	Principal map[string]oneOrMore `json:"Principal"`
	Action    oneOrMore            `json:"Action"`
	Resource  string               `json:"Resource"`
}

// oneOrMore is a list that is written as a text where it has one entry.
type oneOrMore []string

func (l oneOrMore) MarshalJSON() ([]byte, error) {
	if len(l) == 1 {
		return json.Marshal(l[0])
	}
	return json.Marshal([]string(l))
}

const maxStatements = 20

// AddPermission adds a statement to the policy of a queue.
func (s *Service) AddPermission(ctx context.Context, in AddPermissionInput) error {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return err
	}
	if err := checkPermission(&in); err != nil {
		return err
	}
	return s.editPolicy(ctx, q.name, func(p *policy) error {
		if p.at(in.Label) >= 0 {
			return badValue("Label", in.Label, "Already exists.")
		}
		if len(p.Statements) >= maxStatements {
			return fault("OverLimit", "%d statements are allowed in the policy of a queue.", maxStatements)
		}
		raw, err := json.Marshal(s.statement(q.name, &in))
		p.Statements = append(p.Statements, raw)
		return err
	})
}

func checkPermission(in *AddPermissionInput) error {
	switch {
	case in.Label == "":
		return missing("Label")
	case len(in.AWSAccountIds) == 0:
		return missing("AWSAccountIds")
	case len(in.Actions) == 0:
		return missing("Actions")
	case !soundID(in.Label):
		return badValue("Label", in.Label, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
	}
	for _, id := range in.AWSAccountIds {
		if len(id) != 12 || strings.Trim(id, "0123456789") != "" {
			return badValue("PrincipalId", id, "Unable to verify.")
		}
	}
	for _, action := range in.Actions {
		if !slices.Contains(sharedActions(), action) {
			return badValue("ActionName", action, "Please refer to the appropriate WSDL for a list of valid actions.")
		}
	}
	return nil
}

// sharedActions are those that a permission may be given for.
func sharedActions() []string {
	return []string{"*", "SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes", "GetQueueUrl",
		"ListDeadLetterSourceQueues", "PurgeQueue"}
}

func (s *Service) statement(name string, in *AddPermissionInput) statement {
	st := statement{Sid: in.Label, Effect: "Allow", Resource: s.arn(name)}
	var who oneOrMore
	for _, id := range in.AWSAccountIds {
		if arn := "arn:aws:iam::" + id + ":root"; !slices.Contains(who, arn) {
			who = append(who, arn)
		}
	}
	st.Principal = map[string]oneOrMore{"AWS": who}
	for _, action := range in.Actions {
		if action = "SQS:" + action; !slices.Contains(st.Action, action) {
			st.Action = append(st.Action, action)
		}
	}
	return st
}

// RemovePermission takes a statement away, and the policy with its last one.
func (s *Service) RemovePermission(ctx context.Context, in RemovePermissionInput) error {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return err
	}
	if in.Label == "" {
		return missing("Label")
	}
	return s.editPolicy(ctx, q.name, func(p *policy) error {
		i := p.at(in.Label)
		if i < 0 {
			return badValue("Label", in.Label, "can't find label.")
		}
		p.Statements = slices.Delete(p.Statements, i, i+1)
		return nil
	})
}

// at finds the statement of a label; -1: there is none.
func (p *policy) at(label string) int {
	return slices.IndexFunc(p.Statements, func(raw json.RawMessage) bool {
		var st struct{ Sid string }
		return json.Unmarshal(raw, &st) == nil && st.Sid == label
	})
}

func (s *Service) editPolicy(ctx context.Context, name string, f func(*policy) error) error {
	_, err := s.change(ctx, name, func(q *queue, r *record) error {
		p := policy{Version: "2008-10-17", ID: s.arn(name) + "/SQSDefaultPolicy"}
		if text := r.Attributes["Policy"]; text != "" {
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				return fault("InvalidAttributeValue", "The policy of the queue is not one that a statement can be added to.")
			}
		}
		if err := f(&p); err != nil {
			return err
		}
		r.Attributes = maps.Clone(r.Attributes)
		if r.Attributes == nil {
			r.Attributes = map[string]string{}
		}
		delete(r.Attributes, "Policy")
		if len(p.Statements) > 0 {
			text, err := json.Marshal(p)
			if err != nil {
				return err
			}
			r.Attributes["Policy"] = string(text)
		}
		r.Modified = s.cfg.Now().Unix()
		return nil
	})
	return err
}
