package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Headers of a job that replays a dead one.
const (
	HeaderReplayOf = "forebay-replay-of" // the id of that
	HeaderReplays  = "forebay-replays"   // how often it was replayed by now
)

// headerFlow is in all jobs of a flow's run, whose state is kept under their ids.
const headerFlow = "flow"

// ReplayResult is what became of one dead letter that was replayed.
type ReplayResult struct {
	ID  string // of the message that is sent now
	Err error
}

// ReplayDead sends dead letters again, in the order in which they died, so that those
// of a group keep theirs. A dead job becomes a new one, linked to it by HeaderReplayOf,
// without attempts and without its dedup key. A job that others know by its id, since it
// has a parent or is of a flow, is sent again as itself; so is a message that is no job.
//
// The new id follows from the old one and the number of the dead letter: to repeat a
// call that was interrupted sends nothing twice.
func (b *Broker) ReplayDead(ctx context.Context, seqs []int64) ([]ReplayResult, error) {
	if b.able.dead == nil {
		return nil, unsupported("replay dead letters")
	}
	out := make([]ReplayResult, len(seqs))
	letters, err := b.lettersOf(ctx, seqs, out)
	if err != nil {
		return nil, err
	}
	for _, run := range b.replayRuns(letters, out) {
		if err := b.replayRun(ctx, letters, run, out); err != nil {
			return out, err
		}
	}
	for i := range letters { // after those that may be parts of what they are about
		if f := b.replayer(&letters[i].Message); f != nil && out[i].Err == nil {
			out[i] = ReplayResult{letters[i].Message.ID, f(ctx, &letters[i].Message)}
		}
	}
	return out, nil
}

// Replayer replays a dead letter of a kind for which to be sent again is not what is
// wanted. The dead letter stays until whoever knows the kind has let it go.
type Replayer func(ctx context.Context, m *forebay.Message) error

type replayed struct{ queue, kind string }

// OnReplay lets f replay the dead letters of a kind in a queue, whoever asks for it.
func (b *Broker) OnReplay(queue, kind string, f Replayer) {
	b.replayers.Store(replayed{queue, kind}, f)
}

func (b *Broker) replayer(m *forebay.Message) Replayer {
	f, _ := b.replayers.Load(replayed{m.Queue, m.Kind})
	r, _ := f.(Replayer)
	return r
}

// lettersOf gets dead letters by their numbers; of those that are not there out says so.
func (b *Broker) lettersOf(ctx context.Context, seqs []int64, out []ReplayResult) ([]forebay.DeadLetter, error) {
	letters := make([]forebay.DeadLetter, len(seqs))
	for i, seq := range seqs {
		var err error
		if letters[i], err = b.DeadLetter(ctx, seq); forebay.CodeOf(err) == forebay.CodeNotFound {
			out[i].Err = err
		} else if err != nil {
			return nil, err
		}
	}
	return letters, nil
}

// replayRuns parts dead letters, from the smallest number, into runs that are replayed
// alike.
func (b *Broker) replayRuns(letters []forebay.DeadLetter, out []ReplayResult) (runs [][]int) {
	for _, i := range sortedBySeq(letters) {
		if out[i].Err != nil || b.replayer(&letters[i].Message) != nil { // not there, or replayed otherwise
			continue
		}
		n := len(runs)
		if n == 0 || keepsID(&letters[i].Message) != keepsID(&letters[runs[n-1][0]].Message) {
			runs, n = append(runs, nil), n+1
		}
		runs[n-1] = append(runs[n-1], i)
	}
	return runs
}

// replayRun replays some that are alike.
func (b *Broker) replayRun(ctx context.Context, letters []forebay.DeadLetter, run []int, out []ReplayResult) error {
	var seqs []int64
	var next []forebay.Message
	for _, i := range run {
		seqs = append(seqs, letters[i].Seq)
		if keepsID(&letters[i].Message) {
			out[i].ID = letters[i].Message.ID
			continue
		}
		m := replayOf(&letters[i], b.now())
		out[i].ID = m.ID
		next = append(next, m)
	}
	var errs []error
	var err error
	if next == nil {
		errs, err = b.Replay(ctx, seqs)
	} else {
		errs, err = b.replace(ctx, seqs, next)
	}
	if err != nil {
		return err
	}
	for n, i := range run {
		out[i].Err = errs[n]
	}
	return nil
}

// replace puts messages in the place of dead letters.
func (b *Broker) replace(ctx context.Context, seqs []int64, next []forebay.Message) ([]error, error) {
	errs := make([]error, len(seqs))
	if b.able.groups != nil {
		good, refused, err := b.prepare(next)
		if err != nil {
			return nil, err
		}
		var ends []engine.DeadEnd
		for i := range seqs {
			if refused[i] == nil {
				ends = append(ends, engine.DeadEnd{Seq: seqs[i], Next: &good[len(ends)]})
			}
		}
		errs, err := b.able.groups.EndDead(ctx, ends)
		return weave(errs, refused, asIs), err
	}
	results, err := b.Send(ctx, next)
	if err != nil {
		return nil, err
	}
	var sent []int64
	var at []int
	for i := range results {
		if errs[i] = results[i].Err; errs[i] == nil {
			sent, at = append(sent, seqs[i]), append(at, i)
		}
	}
	gone, err := b.able.dead.Discard(ctx, sent)
	for n := range gone {
		errs[at[n]] = gone[n]
	}
	return errs, err
}

// keepsID tells what is replayed as itself.
func keepsID(m *forebay.Message) bool {
	if m.Job == nil {
		return true
	}
	_, flow := m.Headers[headerFlow]
	return flow || m.Job.Parent != ""
}

// replayOf is the message that replays a dead letter.
func replayOf(d *forebay.DeadLetter, now time.Time) forebay.Message {
	m := d.Message
	if m.Job != nil {
		m = again(forebay.Job{Message: m}, now)
		m.Job.Parent = ""
	}
	m.ID, m.NotBefore, m.DedupKey, m.DedupWindow = replayID(d), time.Time{}, "", 0
	n, _ := strconv.Atoi(d.Message.Headers[HeaderReplays]) // none, or not ours
	m.Headers = make(map[string]string, len(d.Message.Headers)+2)
	maps.Copy(m.Headers, d.Message.Headers)
	m.Headers[HeaderReplayOf], m.Headers[HeaderReplays] = d.Message.ID, strconv.Itoa(n+1)
	return m
}

// ReplayID is the id under which ReplayDead sends a dead letter, or ReplayEdited and
// ReplayInto do where it is changed.
func ReplayID(d *forebay.DeadLetter, changed bool) string {
	if keepsID(&d.Message) && !changed {
		return d.Message.ID
	}
	return replayID(d)
}

// replayID is a UUID of the time of death that is the same each time.
func replayID(d *forebay.DeadLetter) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(d.Message.ID+"\x00"), uint64(d.Seq)))
	id := uuid.UUID(sum[:16])
	ms := uint64(d.DiedAt.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80 // as version 7
	return id.String()
}

// sortedBySeq gives the places of dead letters, from the smallest number.
func sortedBySeq(letters []forebay.DeadLetter) []int {
	at := make([]int, len(letters))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(letters[a].Seq, letters[b].Seq) })
	return at
}
