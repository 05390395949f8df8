package enginetest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// The kill test, life of a round:
//
//  1. The test binary starts itself again as a child (kill_child.go). The child
//     opens the store and sends, receives and settles as fast as it can. Before each
//     call and after each answer it writes a line, a fact, to a pipe.
//  2. The parent reads the facts into its own record (kill_record.go), which holds
//     each against those before: what was acked may not come again, and so on.
//  3. At a random moment the parent ends the child with SIGKILL. A call that was
//     begun and not answered may have been done or not; every other is certain.
//  4. The parent opens the store and compares the counts with its record.
//     The ledger must tell of each job what the record knows, and no other end. What
//     the child held under kept leases is still leased, and some of it is acked by the
//     child's receipts; the rest may not come before its time (kill_kept.go).
//  5. After the last round it works everything off: all that was acknowledged as
//     sent and not as ended must come. No job has finished twice, and the history
//     tells of each job what the ledger tells.
//
// SIGKILL does not lose what the system has in memory, so this shows order and
// atomicity of what is written, not fsync.

// KillConfig says what to kill.
type KillConfig struct {
	// Open opens the store in a folder, which may be new.
	Open   func(dir string) (engine.Engine, error)
	Rounds int           // 0: 20
	Life   time.Duration // longest life of a child after its first fact; 0: 400 ms
	Keeps  bool          // the engine keeps leases (engine.Receive.Kept)

	// AllKept: the store is a server that does not notice the end of a process, so that all
	// leases end in their own time. The child asks for kept ones only, which are short.
	AllKept bool
}

const (
	killDirEnv   = "ENGINETEST_KILL_DIR"
	killRoundEnv = "ENGINETEST_KILL_ROUND"
	killSeedEnv  = "ENGINETEST_KILL_SEED"
	factsFD      = 3
)

// Kill holds a store to its promises under SIGKILL. It must be called by a test of
// its own, since the child runs that test again and never returns from here.
// ENGINETEST_SEED chooses the seed.
func Kill(t *testing.T, cfg KillConfig) {
	if dir := os.Getenv(killDirEnv); dir != "" {
		killChild(t, cfg, dir)
		return
	}
	seed := setting(t, "ENGINETEST_SEED", uint64(rand.Uint32()))
	t.Logf("seed %d", seed)
	rounds, life := cfg.Rounds, cfg.Life
	if rounds == 0 {
		rounds = 20
	}
	if life == 0 {
		life = 400 * time.Millisecond
	}
	k := &killer{t: t, cfg: cfg, seed: seed, dir: t.TempDir(), rng: rand.New(rand.NewPCG(seed, 0)), record: newKillRecord()}
	k.record.keeps = cfg.Keeps
	for round := 1; round <= rounds; round++ {
		k.round(round, time.Duration(k.rng.Int64N(int64(life))))
		k.record.endRound()
		k.inspect(round)
	}
	k.workOff()
	if k.record.sent == 0 || k.record.acked == 0 {
		t.Fatalf("nothing was sent or acked in %d rounds: %s", rounds, k.record)
	}
	t.Log(k.record)
}

type killer struct {
	t      *testing.T
	cfg    KillConfig
	seed   uint64
	dir    string
	rng    *rand.Rand
	record *killRecord
}

// round lets a child live for a while after its first fact; one in five is killed
// while it starts.
func (k *killer) round(round int, life time.Duration) {
	k.t.Helper()
	known := filepath.Join(k.dir, "known") // ids for the child to send again
	if err := os.WriteFile(known, []byte(strings.Join(k.record.some(k.rng, 200), "\n")), 0o600); err != nil {
		k.t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		k.t.Fatal(err)
	}
	defer read.Close()
	exe, err := os.Executable()
	if err != nil {
		k.t.Fatal(err)
	}
	var output strings.Builder
	child := exec.Command(exe, "-test.run=^"+k.t.Name()+"$", "-test.count=1")
	child.Env = append(os.Environ(), killDirEnv+"="+k.dir, killRoundEnv+"="+fmt.Sprint(round), killSeedEnv+"="+fmt.Sprint(k.seed))
	child.Stdout, child.Stderr, child.ExtraFiles = &output, &output, []*os.File{write}
	if err := child.Start(); err != nil {
		k.t.Fatal(err)
	}
	_ = write.Close() // the child has its own
	end := time.NewTimer(10 * time.Second)
	if k.rng.IntN(5) == 0 {
		end.Reset(life / 4)
	}
	facts := make(chan error, 1)
	go func() { facts <- k.read(read, func() { end.Reset(life) }) }()
	select {
	case <-end.C:
	case err = <-facts: // something is wrong already
		facts <- err
	}
	_ = child.Process.Kill()
	_ = child.Wait() // it was killed, so it says so
	if err := <-facts; err != nil {
		k.t.Fatalf("seed %d, round %d: %v\n%s", k.seed, round, err, &output)
	}
	if code := child.ProcessState.ExitCode(); code != -1 {
		k.t.Fatalf("seed %d, round %d: the child ended by itself with code %d\n%s", k.seed, round, code, &output)
	}
}

// read takes in the facts of a child until its pipe ends.
func (k *killer) read(pipe *os.File, first func()) error {
	lines := bufio.NewReader(pipe)
	for n := 0; ; n++ {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil // the child is dead; a line cut short was never said
		}
		if n == 0 {
			first()
		}
		if err := k.record.fact(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
}

func (k *killer) open() engine.Engine {
	k.t.Helper()
	e, err := k.cfg.Open(filepath.Join(k.dir, "store"))
	if err != nil {
		k.t.Fatalf("seed %d: the store does not open: %v", k.seed, err)
	}
	return e
}

// inspect compares the counts of the store with the record.
func (k *killer) inspect(round int) {
	k.t.Helper()
	e := k.open()
	defer func() { _ = e.Close() }()
	s, err := e.Stats(context.Background(), testQueue)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := k.record.counts(s[0]); err != nil {
		k.t.Fatalf("seed %d, round %d: %v; %s", k.seed, round, err, k.record)
	}
	if err := k.held(e); err != nil {
		k.t.Fatalf("seed %d, round %d: %v", k.seed, round, err)
	}
	if err := k.jobs(e, k.record.some(k.rng, 300)); err != nil {
		k.t.Fatalf("seed %d, round %d: %v", k.seed, round, err)
	}
}

// workOff takes all that is left and wants the record empty.
func (k *killer) workOff() {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e := k.open()
	defer func() { _ = e.Close() }()
	for batch := 0; ; batch++ {
		ds, err := e.Receive(ctx, engine.Receive{Queue: testQueue, Max: 500, Wait: 200 * time.Millisecond})
		if err != nil {
			k.t.Fatalf("seed %d, at the end: %v", k.seed, err)
		}
		if len(ds) == 0 && !k.left(ctx, e) {
			break
		}
		for _, d := range ds {
			if err := k.record.fact(gotFact(d, fmt.Sprint("end", batch))); err != nil {
				k.t.Fatalf("seed %d, at the end: %v", k.seed, err)
			}
		}
		errs, err := e.Settle(ctx, acks(ds))
		if err != nil {
			k.t.Fatal(err)
		}
		for i, err := range errs {
			if err != nil {
				k.t.Fatalf("seed %d, at the end: ack of %q: %v", k.seed, ds[i].ID, err)
			}
			if err := k.record.fact("did ack " + ds[i].ID); err != nil {
				k.t.Fatalf("seed %d, at the end: %v", k.seed, err)
			}
		}
	}
	if err := k.record.empty(k.deadIDs(ctx, e)); err != nil {
		k.t.Fatalf("seed %d, at the end: %v", k.seed, err)
	}
	if err := k.jobs(e, k.record.known); err != nil {
		k.t.Fatalf("seed %d, at the end: %v", k.seed, err)
	}
	if err := k.history(e); err != nil {
		k.t.Fatalf("seed %d, at the end: %v", k.seed, err)
	}
}

// deadIDs are all dead letters, or nil where the engine does not keep them.
func (k *killer) deadIDs(ctx context.Context, e engine.Engine) map[string]bool {
	k.t.Helper()
	dl, ok := engine.As[engine.DeadLetters](e)
	if !ok {
		return nil
	}
	ids, q := make(map[string]bool), engine.DeadQuery{Limit: 1000}
	for {
		letters, err := dl.Dead(ctx, q)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, l := range letters {
			ids[l.Message.ID] = true
			q.Before = l.Seq
		}
		if len(letters) < q.Limit {
			return ids
		}
	}
}

func gotFact(d forebay.Delivery, batch string) string {
	return fmt.Sprintf("got %s %d %d %s", d.ID, d.Deliveries, d.Attempt, batch)
}
