package queue

import (
	"context"
	"slices"
	"strconv"
)

// GetQueueAttributes tells attributes of a queue, all or those that are named.
func (s *Service) GetQueueAttributes(ctx context.Context, in GetAttributesInput) (AttributesOutput, error) {
	var none AttributesOutput
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil || len(in.AttributeNames) == 0 {
		return none, err
	}
	for _, name := range in.AttributeNames {
		if !s.knows(name) {
			return none, fault("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	all := s.whole(q.fifo, q.Attributes)
	all["QueueArn"] = s.arn(q.name)
	all["CreatedTimestamp"] = strconv.FormatInt(q.Created, 10)
	all["LastModifiedTimestamp"] = strconv.FormatInt(q.Modified, 10)
	if all["KmsMasterKeyId"] != "" && all["KmsDataKeyReusePeriodSeconds"] == "" {
		all["KmsDataKeyReusePeriodSeconds"] = "300"
	}
	if err := s.addCounts(ctx, q, in.AttributeNames, all); err != nil {
		return none, err
	}
	if !slices.Contains(in.AttributeNames, "All") {
		for name := range all {
			if !slices.Contains(in.AttributeNames, name) {
				delete(all, name)
			}
		}
	}
	return AttributesOutput{Attributes: all}, nil
}

const (
	countWaiting = "ApproximateNumberOfMessages"
	countActive  = "ApproximateNumberOfMessagesNotVisible"
	countDelayed = "ApproximateNumberOfMessagesDelayed"
)

// addCounts adds the numbers of messages, if one of them is asked for.
func (s *Service) addCounts(ctx context.Context, q *queue, names []string, all map[string]string) error {
	if !slices.ContainsFunc(names, func(n string) bool { return n == "All" || n == countWaiting || n == countActive || n == countDelayed }) {
		return nil
	}
	stats, err := s.engine.Stats(ctx, q.name)
	if err != nil {
		return s.failed(ctx, err)
	}
	all[countWaiting] = strconv.FormatInt(stats[0].Waiting, 10)
	all[countActive] = strconv.FormatInt(stats[0].Active, 10)
	all[countDelayed] = strconv.FormatInt(stats[0].Delayed, 10)
	return nil
}

// knows tells whether an attribute may be asked for.
func (s *Service) knows(name string) bool {
	switch name {
	case "All", "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", countWaiting, countActive, countDelayed:
		return true
	}
	return slices.ContainsFunc(s.attributes, func(a attribute) bool { return a.name == name })
}

// SetQueueAttributes changes attributes. An empty value takes a policy away.
func (s *Service) SetQueueAttributes(ctx context.Context, in SetAttributesInput) error {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return err
	}
	if len(in.Attributes) == 0 {
		return missing("Attributes")
	}
	if _, said := in.Attributes["FifoQueue"]; said {
		if !q.fifo {
			return fault("InvalidAttributeName", "Unknown Attribute FifoQueue.")
		}
		if in.Attributes["FifoQueue"] != "true" {
			return fault("InvalidAttributeValue", "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.")
		}
	}
	set, err := s.checked(q.fifo, in.Attributes)
	if err != nil {
		return err
	}
	delete(set, "FifoQueue")
	if err := s.checkPolicies(ctx, q.name, merged(q.Attributes, set)); err != nil {
		return err
	}
	_, err = s.change(ctx, q.name, func(_ *queue, r *record) error {
		r.Attributes = merged(r.Attributes, set)
		r.Modified = s.cfg.Now().Unix()
		return nil
	})
	return err
}
