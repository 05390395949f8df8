package broker

import (
	"cmp"
	"context"
	"slices"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of what is done for engines that list their dead letters, newest first, and
// no more.
const (
	deadPage    = 1000
	deadScanned = 20_000 // dead letters that a list of causes looks at
)

// Dead lists dead letters, as engine.DeadLetters says; by fingerprint on every engine.
func (b *Broker) Dead(ctx context.Context, q engine.DeadQuery) ([]forebay.DeadLetter, error) {
	if b.able.dead == nil {
		return nil, unsupported("list dead letters")
	}
	if q.Group == 0 || b.able.groups != nil {
		letters, err := b.able.dead.Dead(ctx, q)
		return fingerprinted(letters), err
	}
	limit := cmp.Or(q.Limit, 100)
	var out []forebay.DeadLetter
	err := b.eachDead(ctx, q, func(d *forebay.DeadLetter) bool {
		if d.Fingerprint == q.Group {
			out = append(out, *d)
		}
		return len(out) < limit
	})
	return out, err
}

// fingerprinted adds what the engine does not say.
func fingerprinted(letters []forebay.DeadLetter) []forebay.DeadLetter {
	for i := range letters {
		if d := &letters[i]; d.Fingerprint == 0 {
			d.Fingerprint, _ = engine.DeadFingerprint(d.Message.Queue, d.Message.Kind, d.Cause)
		}
	}
	return letters
}

// eachDead goes through dead letters, newest first, until do says that it is enough.
func (b *Broker) eachDead(ctx context.Context, q engine.DeadQuery, do func(*forebay.DeadLetter) bool) error {
	q.Group, q.Limit = 0, deadPage
	for {
		page, err := b.able.dead.Dead(ctx, q)
		if err != nil || len(page) == 0 {
			return err
		}
		fingerprinted(page)
		for i := range page {
			if !do(&page[i]) {
				return nil
			}
		}
		q.Before = page[len(page)-1].Seq
	}
}

// DeadLetter gets one by its number.
func (b *Broker) DeadLetter(ctx context.Context, seq int64) (forebay.DeadLetter, error) {
	letters, err := b.Dead(ctx, engine.DeadQuery{Before: seq + 1, Limit: 1})
	if err != nil {
		return forebay.DeadLetter{}, err
	}
	if len(letters) == 0 || letters[0].Seq != seq {
		return forebay.DeadLetter{}, noLetter(seq)
	}
	return letters[0], nil
}

func noLetter(seq int64) error {
	return forebay.Errorf(forebay.CodeNotFound, "", "there is no dead letter %d", seq)
}

// DeadGroups lists dead letters by cause, as engine.DeadGroups says. For an engine
// without that it goes through the newest; partial: there are older ones.
func (b *Broker) DeadGroups(ctx context.Context, q engine.DeadGroupQuery) (page engine.DeadGroupPage, partial bool, err error) {
	if b.able.groups != nil {
		page, err = b.able.groups.DeadGroups(ctx, q)
		return page, false, err
	}
	if b.able.dead == nil {
		return page, false, unsupported("list dead letters")
	}
	if q.Order != "" && q.Order != engine.DeadNewest && q.Order != engine.DeadLargest {
		return page, false, invalid("order", "%q is no order; %s and %s are", q.Order, engine.DeadNewest, engine.DeadLargest)
	}
	if q.Limit < 0 || q.Limit > deadPage {
		return page, false, invalid("limit", "limit is %d; 1 to %d are allowed, or 0 for 100", q.Limit, deadPage)
	}
	if q.After != "" {
		return page, false, invalid("after", "this engine lists causes in one page only")
	}
	all, partial, err := b.countDead(ctx, &q)
	if err != nil {
		return page, false, err
	}
	slices.SortFunc(all, func(x, y engine.DeadGroup) int {
		if q.Order == engine.DeadLargest && x.Count != y.Count {
			return cmp.Compare(y.Count, x.Count)
		}
		return cmp.Compare(y.Sample, x.Sample)
	})
	limit := cmp.Or(q.Limit, 100)
	page.Groups = all[:min(limit, len(all))]
	return page, partial || len(all) > limit, nil
}

func (b *Broker) countDead(ctx context.Context, q *engine.DeadGroupQuery) (all []engine.DeadGroup, partial bool, err error) {
	at := make(map[uint64]int)
	looked := 0
	err = b.eachDead(ctx, engine.DeadQuery{Queue: q.Queue, Code: q.Code}, func(d *forebay.DeadLetter) bool {
		if looked++; looked > deadScanned {
			partial = true
			return false
		}
		if q.Kind != "" && q.Kind != d.Message.Kind || q.Fingerprint != 0 && q.Fingerprint != d.Fingerprint {
			return true
		}
		i, known := at[d.Fingerprint]
		if !known {
			i, at[d.Fingerprint] = len(all), len(all)
			all = append(all, engine.DeadGroup{
				Fingerprint: d.Fingerprint, Queue: d.Message.Queue, Kind: d.Message.Kind, Code: d.Cause.Code,
				Text: engine.CauseText(d.Cause.Message), Last: d.DiedAt, Sample: d.Seq,
			})
		}
		all[i].Count++
		all[i].First = d.DiedAt
		return true
	})
	return all, partial, err
}

// DeadSeqs lists the numbers of dead letters, oldest first, as engine.DeadGroups says.
func (b *Broker) DeadSeqs(ctx context.Context, q engine.DeadQuery, after int64) ([]int64, error) {
	if b.able.groups != nil {
		return b.able.groups.DeadSeqs(ctx, q, after)
	}
	if b.able.dead == nil {
		return nil, unsupported("list dead letters")
	}
	limit := cmp.Or(q.Limit, 100)
	var seqs []int64
	err := b.eachDead(ctx, q, func(d *forebay.DeadLetter) bool {
		if d.Seq > after && (q.Group == 0 || d.Fingerprint == q.Group) {
			seqs = append(seqs, d.Seq)
		}
		return d.Seq > after
	})
	slices.Sort(seqs)
	return seqs[:min(limit, len(seqs))], err
}

// DiscardDead removes dead letters for good; the reason is in the history, where the
// engine takes one.
func (b *Broker) DiscardDead(ctx context.Context, seqs []int64, reason string) ([]error, error) {
	if err := engine.CheckText("reason", reason); err != nil {
		return nil, err
	}
	if b.able.groups == nil {
		return b.Discard(ctx, seqs)
	}
	ends := make([]engine.DeadEnd, len(seqs))
	for i, seq := range seqs {
		ends[i] = engine.DeadEnd{Seq: seq, Reason: reason}
	}
	return b.able.groups.EndDead(ctx, ends)
}
