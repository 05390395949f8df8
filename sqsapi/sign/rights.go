package sign

import (
	"fmt"
	"strings"
)

// Action is a set of what may be done with a queue.
type Action uint8

// What a right allows: Send is sending, Receive is receiving, deleting and changing
// the visibility, Manage is all that changes or removes queues.
const (
	Send Action = 1 << iota
	Receive
	Manage
)

var actionNames = []struct {
	action Action
	name   string
}{{Send, "send"}, {Receive, "receive"}, {Manage, "manage"}}

// Names lists the actions of a set: send, receive, manage.
func (a Action) Names() []string {
	var names []string
	for _, n := range actionNames {
		if a&n.action != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// ParseAction reads a name of Names.
func ParseAction(name string) (Action, error) {
	for _, n := range actionNames {
		if n.name == name {
			return n.action, nil
		}
	}
	return 0, fmt.Errorf("%q is not one of send, receive, manage", name)
}

// Right allows actions on the queues whose names match.
type Right struct {
	Queues  string   `json:"queues"`  // a name; each * in it stands for any text
	Actions []string `json:"actions"` // send, receive, manage
}

// May tells whether a key has any of these rights on a queue.
func (k *Key) May(a Action, queue string) bool {
	for _, r := range k.Rights {
		if r.set()&a != 0 && matches(r.Queues, queue) {
			return true
		}
	}
	return false
}

// set is the rights' actions; names that are none are refused before.
func (r *Right) set() (set Action) {
	for _, name := range r.Actions {
		a, _ := ParseAction(name)
		set |= a
	}
	return set
}

func (r *Right) problems() []string {
	var p []string
	if r.Queues == "" || len(r.Queues) > maxPattern || strings.Count(r.Queues, "*") > maxStars {
		p = append(p, fmt.Sprintf("rights: queues: a name of at most %d characters with at most %d of *", maxPattern, maxStars))
	}
	if len(r.Actions) == 0 {
		p = append(p, "rights: actions: one or more of send, receive, manage")
	}
	for _, name := range r.Actions {
		if _, err := ParseAction(name); err != nil {
			p = append(p, "rights: actions: "+err.Error())
		}
	}
	return p
}

// matches tells whether name is like pattern. What stands between two stars is found
// at its first place, which is never worse than a later one.
func matches(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], after
	}
}
