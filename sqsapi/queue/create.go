package queue

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// CreateQueue makes a queue. One that is there with the same attributes is fine.
func (s *Service) CreateQueue(ctx context.Context, in CreateQueueInput) (QueueUrlOutput, error) {
	var none QueueUrlOutput
	name := in.QueueName
	if name == "" {
		return none, missing("QueueName")
	}
	if err := checkName(name); err != nil {
		return none, err
	}
	set, err := s.checked(isFifo(name), in.Attributes)
	if err != nil {
		return none, err
	}
	if err := checkKind(name, in.Attributes); err != nil {
		return none, err
	}
	if err := checkTags(in.Tags, nil); err != nil {
		return none, err
	}
	delete(set, "FifoQueue") // the name says it
	if err := s.checkPolicies(ctx, name, merged(nil, set)); err != nil {
		return none, err
	}
	for range putTries {
		if err = s.create(ctx, name, set, in.Tags); err != errConflict {
			break
		}
	}
	if err != nil {
		return none, busyAt(err)
	}
	return QueueUrlOutput{QueueUrl: name}, nil
}

// checkKind looks whether the name and the attributes mean the same kind of queue.
func checkKind(name string, set map[string]string) error {
	fifo, said := set["FifoQueue"]
	switch {
	case isFifo(name) && fifo != "true":
		return badName()
	case !isFifo(name) && fifo == "true":
		return invalidValue("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length")
	case !isFifo(name) && said:
		return fault("InvalidAttributeName", "Unknown Attribute FifoQueue.")
	}
	return nil
}

func (s *Service) create(ctx context.Context, name string, set, tags map[string]string) error {
	q, err := s.load(ctx, name)
	if err != nil {
		return err
	}
	rev := int64(0)
	if q != nil && q.Deleted == 0 {
		return s.same(q, set)
	}
	if q != nil {
		rev = q.rev
		if s.cfg.Now().Sub(time.UnixMilli(q.Deleted)) < restAfterDelete {
			return fault("QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name.")
		}
	}
	fresh := s.fresh(merged(nil, set), tags)
	if q != nil { // what the engine has of the former one is not its
		fresh.Since = s.cfg.Now().UnixNano()
	}
	if q, err = s.put(ctx, name, fresh, rev); err == nil {
		err = s.tellDelay(ctx, q)
	}
	return err
}

// same refuses to create a queue that is there with another value of an attribute.
func (s *Service) same(q *queue, set map[string]string) error {
	is := s.whole(q.fifo, q.Attributes)
	for _, attr := range slices.Sorted(maps.Keys(set)) {
		if !sameValue(attr, set[attr], is[attr]) {
			return fault("QueueNameExists", "A queue already exists with the same name and a different value for attribute %s", attr)
		}
	}
	return nil
}

// sameValue compares values of an attribute; policies by what they say.
func sameValue(attr, a, b string) bool {
	if a == b {
		return true
	}
	if attr == "RedrivePolicy" {
		p, err := parseRedrive(a)
		o, oerr := parseRedrive(b)
		return err == nil && oerr == nil && p != nil && o != nil && *p == *o
	}
	var v, w any
	return strings.HasSuffix(attr, "Policy") && json.Unmarshal([]byte(a), &v) == nil && json.Unmarshal([]byte(b), &w) == nil && reflect.DeepEqual(v, w)
}

// GetQueueUrl tells whether a queue is there.
func (s *Service) GetQueueUrl(ctx context.Context, in GetQueueUrlInput) (QueueUrlOutput, error) {
	if in.QueueName == "" {
		return QueueUrlOutput{}, missing("QueueName")
	}
	if in.QueueOwnerAWSAccountId != "" && in.QueueOwnerAWSAccountId != s.cfg.Account {
		return QueueUrlOutput{}, noQueue()
	}
	q, err := s.byName(ctx, in.QueueName)
	if err != nil {
		return QueueUrlOutput{}, err
	}
	return QueueUrlOutput{QueueUrl: q.name}, nil
}

// checkPolicies looks at the redrive policy that a queue is to have.
func (s *Service) checkPolicies(ctx context.Context, name string, all map[string]string) error {
	if err := checkTogether(s.whole(isFifo(name), all)); err != nil {
		return err
	}
	p, err := parseRedrive(all["RedrivePolicy"])
	if p == nil || err != nil {
		return err
	}
	refuse := func(why string) error { return badValue("RedrivePolicy", all["RedrivePolicy"], why) }
	to := s.ours(p.Target)
	if to == "" {
		return refuse("Dead letter target does not exist.")
	}
	q, err := s.byName(ctx, to)
	if isShape(err, "QueueDoesNotExist") {
		return refuse("Dead letter target does not exist.")
	}
	switch {
	case err != nil:
		return err
	case isFifo(to) != isFifo(name):
		return refuse("Dead-letter queue must be same type of queue as the source queue.")
	case !q.allow.allows(s.arn(name)):
		return refuse("The redrive allow policy of the dead-letter queue does not allow this queue as a source.")
	}
	return nil
}

// allows tells whether a queue may be a source. No policy allows all.
func (a *redriveAllow) allows(source string) bool {
	return a == nil || a.Permission == "allowAll" || a.Permission == "byQueue" && slices.Contains(a.Sources, source)
}
