package sqsapi

import (
	"context"
	"reflect"

	"github.com/forebayhq/forebay/sqsapi/queue"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

// action is one of the 23, in both protocols.
type action struct {
	name    string
	needs   sign.Action // any of these rights on the queue lets it pass
	waits   bool        // until there is something to answer
	in, out *shape      // for the Query protocol
	run     func(*call) (any, error)
}

const (
	send    = sign.Send
	receive = sign.Receive
	manage  = sign.Manage
	whoever = send | receive | manage
)

// actions is the whole protocol: a line is all that an action needs.
func actions() map[string]*action {
	type S = *queue.Service
	all := []*action{
		act("AddPermission", manage, told(S.AddPermission)),
		act("CancelMessageMoveTask", manage, S.CancelMessageMoveTask),
		act("ChangeMessageVisibility", receive, told(S.ChangeMessageVisibility)),
		act("ChangeMessageVisibilityBatch", receive, S.ChangeMessageVisibilityBatch),
		act("CreateQueue", manage, S.CreateQueue),
		act("DeleteMessage", receive, told(S.DeleteMessage)),
		act("DeleteMessageBatch", receive, S.DeleteMessageBatch),
		act("DeleteQueue", manage, told(S.DeleteQueue)),
		act("GetQueueAttributes", whoever, S.GetQueueAttributes),
		act("GetQueueUrl", whoever, S.GetQueueUrl),
		act("ListDeadLetterSourceQueues", manage, S.ListDeadLetterSourceQueues),
		act("ListMessageMoveTasks", manage, S.ListMessageMoveTasks),
		act("ListQueueTags", whoever, S.ListQueueTags),
		act("ListQueues", whoever, S.ListQueues),
		act("PurgeQueue", manage, told(S.PurgeQueue)),
		act("ReceiveMessage", receive, S.ReceiveMessage),
		act("RemovePermission", manage, told(S.RemovePermission)),
		act("SendMessage", send, S.SendMessage),
		act("SendMessageBatch", send, S.SendMessageBatch),
		act("SetQueueAttributes", manage, told(S.SetQueueAttributes)),
		act("StartMessageMoveTask", manage, S.StartMessageMoveTask),
		act("TagQueue", manage, told(S.TagQueue)),
		act("UntagQueue", manage, told(S.UntagQueue)),
	}
	named := make(map[string]*action, len(all))
	for _, a := range all {
		named[a.name] = a
	}
	named["ReceiveMessage"].waits = true
	return named
}

// nothing is the answer of an action that answers nothing.
type nothing struct{}

func told[In any](do func(*queue.Service, context.Context, In) error) func(*queue.Service, context.Context, In) (nothing, error) {
	return func(s *queue.Service, ctx context.Context, in In) (nothing, error) {
		return nothing{}, do(s, ctx, in)
	}
}

// act makes an action of a method of the service.
func act[In, Out any](name string, needs sign.Action, do func(*queue.Service, context.Context, In) (Out, error)) *action {
	a := &action{name: name, needs: needs, in: shapeOf(reflect.TypeFor[In](), name), out: shapeOf(reflect.TypeFor[Out](), name)}
	a.run = func(c *call) (any, error) {
		in := new(In)
		err := c.speaks.decode(a, in)
		c.release() // not held while a receive waits
		if err != nil {
			return nil, err
		}
		if err := c.permit(in); err != nil {
			return nil, err
		}
		ctx, end, err := c.patience()
		if err != nil {
			return nil, err
		}
		defer end()
		out, err := do(c.front.cfg.Service, ctx, *in)
		if err != nil {
			return c.impatient(err)
		}
		if _, empty := any(out).(nothing); empty {
			return nil, nil
		}
		return c.addressed(&out), nil
	}
	return a
}
