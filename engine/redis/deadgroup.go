package redis

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Groups of dead letters are kept beside them: who buries one does nothing for it, and who
// asks for groups, or the keeper before that, first counts those that have come since. So
// each is read once for it, whoever let it die, and a list of groups reads none.

const (
	groupsAtOnce = 200    // dead letters that are counted by one script
	groupTurns   = 10_000 // of them, by who asks
	keeperTurns  = 20     // by the keeper, each time
)

// groupName is a group as keys have it; empty: all.
func groupName(print uint64) string {
	if print == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", print)
}

func readGroup(name string) uint64 {
	print, err := strconv.ParseUint(name, 16, 64)
	if err != nil {
		return 0 // it has none yet
	}
	return print
}

// groupDead counts dead letters that have not been counted yet, so many scripts of them.
func (e *Engine) groupDead(ctx context.Context, turns int) error {
	for range turns {
		v, err := e.run(ctx, "deadnew", groupsAtOnce)
		if err != nil || len(v.out) == 0 {
			return err
		}
		args, n := []any{0, engine.MaxDeadGroups, 0}, 0
		for _, one := range v.out {
			f := list(one)
			args[0] = text(f[0])
			if len(f) < 6 {
				continue
			}
			queue, kind := text(f[1]), text(f[2])
			c := causeOf(text(f[3]), text(f[4]))
			print, says := engine.DeadFingerprint(queue, kind, c)
			rest := engine.DeadFingerprintRest(queue, kind, c.Code)
			args = append(args, text(f[0]), groupName(print), groupName(rest), says, queue, kind, c.Code, text(f[5]))
			n++
		}
		args[2] = n
		if _, err := e.run(ctx, "deadput", args...); err != nil || len(v.out) < groupsAtOnce {
			return err
		}
	}
	return nil
}

// placeOfGroup is where a page of groups ends.
type placeOfGroup struct {
	score int64
	group uint64
}

func (p placeOfGroup) String() string { return fmt.Sprintf("%d.%016x", p.score, p.group) }

// DeadGroups lists groups; see engine.DeadGroups.
func (e *Engine) DeadGroups(ctx context.Context, q engine.DeadGroupQuery) (page engine.DeadGroupPage, err error) {
	order := map[engine.DeadOrder]string{"": "dn", engine.DeadNewest: "dn", engine.DeadLargest: "dc"}[q.Order]
	if order == "" {
		return page, bad("order", "%q is no order; %s and %s are", q.Order, engine.DeadNewest, engine.DeadLargest)
	}
	if err := checkDeadLimit(q.Limit); err != nil {
		return page, err
	}
	var at placeOfGroup
	if q.After != "" {
		_, err := fmt.Sscanf(q.After, "%d.%x", &at.score, &at.group)
		if err != nil || at.String() != q.After {
			return page, bad("after", "%q is not the next of a page", cut(q.After, 80))
		}
	}
	if err := e.enter(); err != nil {
		return page, err
	}
	defer e.leave()
	if err := e.groupDead(ctx, groupTurns); err != nil {
		return page, err
	}
	limit := cmp.Or(q.Limit, 100)
	for {
		v, err := e.run(ctx, "deadgroups", order, at.score, groupName(at.group), limit-len(page.Groups), q.Queue, q.Kind, q.Code, groupName(q.Fingerprint))
		if err != nil {
			return engine.DeadGroupPage{}, err
		}
		for _, one := range v.out {
			page.Groups = append(page.Groups, deadGroup(list(one)))
		}
		if len(v.extra) < 2 {
			return page, nil
		}
		at = placeOfGroup{number(v.extra[0]), readGroup(text(v.extra[1]))}
		if len(page.Groups) == limit {
			page.Next = at.String()
			return page, nil
		}
	}
}

func deadGroup(f []any) engine.DeadGroup {
	return engine.DeadGroup{
		Fingerprint: readGroup(text(f[1])), Queue: text(f[2]), Kind: text(f[3]), Code: text(f[4]), Text: text(f[5]), Count: number(f[6]),
		First: atMillis(number(f[7])), Last: atMillis(number(f[8])), Sample: number(f[9]),
	}
}

func checkDeadLimit(n int) error {
	if n < 0 || n > 1000 {
		return bad("limit", "a limit of %d; 1 to 1000 are allowed", n)
	}
	return nil
}

// bad is an error about a field of a question.
func bad(field, format string, args ...any) error {
	err := fail(forebay.CodeInvalid, format, args...)
	err.Field = field
	return err
}

// DeadSeqs lists dead letters, oldest first; see engine.DeadGroups.
func (e *Engine) DeadSeqs(ctx context.Context, q engine.DeadQuery, after int64) (seqs []int64, err error) {
	if err := checkDeadLimit(q.Limit); err != nil {
		return nil, err
	}
	if q.ID != "" {
		q.Limit = 1
		letters, err := e.Dead(ctx, q)
		if err != nil || len(letters) == 0 || letters[0].Seq <= after {
			return nil, err
		}
		return []int64{letters[0].Seq}, nil
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if q.Group != 0 {
		if err := e.groupDead(ctx, groupTurns); err != nil {
			return nil, err
		}
	}
	causes := 0
	if q.Code != "" {
		causes = 1
	}
	for limit := cmp.Or(q.Limit, 100); len(seqs) < limit; {
		v, err := e.run(ctx, "deadseqs", q.Queue, groupName(q.Group), after, q.Before, min(limit, claimsAtOnce), causes)
		if err != nil || len(v.out) == 0 {
			return seqs, err
		}
		for _, one := range v.out {
			f := list(one)
			after = number(f[0])
			c, _ := readCause(text(f[1]))
			if (causes == 0 || c.Code == q.Code) && len(seqs) < limit {
				seqs = append(seqs, after)
			}
		}
	}
	return seqs, nil
}

// EndDead takes dead letters away; see engine.DeadGroups.
func (e *Engine) EndDead(ctx context.Context, ends []engine.DeadEnd) ([]error, error) {
	errs, now := make([]error, len(ends)), e.now()
	var seqs []int64
	var tells [][]any
	var of []int
	for i := range ends {
		tell := []any{ends[i].Reason, 0}
		if next := ends[i].Next; next != nil {
			if errs[i] = engine.CheckMessage(next, now); errs[i] != nil {
				continue
			}
			it := e.itemOf(next)
			tell = append([]any{ends[i].Reason, 1}, it.args()...)
		}
		seqs, tells, of = append(seqs, ends[i].Seq), append(tells, tell), append(of, i)
	}
	done, err := e.redrive(ctx, "discard", seqs, func(i int) []any { return tells[i] })
	for n, err := range done {
		errs[of[n]] = err
	}
	return errs, err
}

// causeOf reads the cause of a dead letter: ours, or the reason that a Node worker gave.
func causeOf(kept, reason string) forebay.Cause {
	c, whole := readCause(kept)
	if !whole && reason != "" {
		c = forebay.Cause{Code: "handler", Message: reason}
	}
	return c
}
