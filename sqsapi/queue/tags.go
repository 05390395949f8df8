package queue

import (
	"context"
	"maps"
	"strings"
	"unicode/utf8"
)

// TagQueue sets tags of a queue.
func (s *Service) TagQueue(ctx context.Context, in TagInput) error {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return err
	}
	if len(in.Tags) == 0 {
		return missing("Tags")
	}
	_, err = s.change(ctx, q.name, func(_ *queue, r *record) error {
		if err := checkTags(in.Tags, r.Tags); err != nil {
			return err
		}
		tags := maps.Clone(r.Tags)
		if tags == nil {
			tags = map[string]string{}
		}
		maps.Copy(tags, in.Tags)
		r.Tags = tags
		return nil
	})
	return err
}

// UntagQueue takes tags away.
func (s *Service) UntagQueue(ctx context.Context, in UntagInput) error {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return err
	}
	if len(in.TagKeys) == 0 {
		return missing("TagKeys")
	}
	_, err = s.change(ctx, q.name, func(_ *queue, r *record) error {
		r.Tags = maps.Clone(r.Tags)
		for _, key := range in.TagKeys {
			delete(r.Tags, key)
		}
		return nil
	})
	return err
}

// ListQueueTags tells the tags of a queue.
func (s *Service) ListQueueTags(ctx context.Context, in NamedInput) (TagsOutput, error) {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return TagsOutput{}, err
	}
	return TagsOutput{Tags: maps.Clone(q.Tags)}, nil
}

// checkTags looks at tags that are added to others.
func checkTags(add, old map[string]string) error {
	n := len(old)
	for key, value := range add {
		switch {
		case key == "" || utf8.RuneCountInString(key) > 128 || strings.HasPrefix(strings.ToLower(key), "aws:"):
			return invalidValue("Tag keys must be between 1 and 128 characters in length and must not begin with aws:.")
		case utf8.RuneCountInString(value) > 256:
			return invalidValue("Tag values must be between 0 and 256 characters in length.")
		}
		if _, is := old[key]; !is {
			n++
		}
	}
	if n > maxTags {
		return invalidValue("Too many tags added for queue; the most is %d.", maxTags)
	}
	return nil
}
