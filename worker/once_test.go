package worker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

// payFolder names, to a child process, the folder in which it pays.
const payFolder = "FOREBAY_TEST_PAY"

func TestMain(m *testing.M) {
	if folder := os.Getenv(payFolder); folder != "" {
		if err := pay(folder); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const charged = "charged, not settled"

// pay is the process that is killed: its handler charges a card, once, and hangs
// between that and its verdict, unless the folder says that it shall live.
func pay(folder string) error {
	return paying(folder, func(b *broker.Broker) error {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		w, err := worker.New(b, worker.Config{
			Queue:   queue,
			Observe: worker.Observe{Settled: func(worker.Outcome) { stop() }},
			Jobs: worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
				receipt, err := j.Once(ctx, "charge", func(context.Context) ([]byte, error) {
					return []byte(`"receipt 1"`), charge(folder)
				})
				if _, dies := os.Stat(filepath.Join(folder, "live")); dies != nil {
					fmt.Println(charged)
					<-make(chan struct{})
				}
				return receipt, err
			}),
		})
		if err != nil {
			return err
		}
		return w.Run(ctx)
	})
}

func paying(folder string, do func(b *broker.Broker) error) error {
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(folder, "queue.db")})
	if err != nil {
		return err
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		return errors.Join(err, e.Close())
	}
	return errors.Join(do(b), b.Close())
}

// charge is the effect: a line in the books of somebody else.
func charge(folder string) error {
	f, err := os.OpenFile(filepath.Join(folder, "charges"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, "9.99")
	return errors.Join(err, f.Sync(), f.Close())
}

// A process that is killed between an effect and the verdict has had the effect:
// the job comes again, and is done without a second one.
func TestEffectOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	err := paying(folder, func(b *broker.Broker) error {
		results, err := b.Send(t.Context(), []forebay.Message{{ID: "payment_success/1", Queue: queue, Kind: "payment", Job: &forebay.JobOptions{}}})
		return errors.Join(err, results[0].Err)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		killWhenCharged(t, folder)
	}
	if err := os.WriteFile(filepath.Join(folder, "live"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := child(t, folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	books, err := os.ReadFile(filepath.Join(folder, "charges"))
	if err != nil || string(books) != "9.99\n" {
		t.Errorf("the books say %q, %v", books, err)
	}
	err = paying(folder, func(b *broker.Broker) error {
		j, err := b.Job(t.Context(), "payment_success/1")
		if got, want := fmt.Sprint(j.State, " ", string(j.Result), " ", j.Attempts, " ", j.Deliveries), `completed "receipt 1" 0 3`; got != want {
			t.Errorf("the job is %s, want %s", got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func child(t *testing.T, folder string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), payFolder+"="+folder)
	return cmd
}

func killWhenCharged(t *testing.T, folder string) {
	t.Helper()
	cmd := child(t, folder)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != charged {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child was not killed")
	}
}

// In a job that no worker made, as in a handler's own test, Once just runs.
func TestOnceWithoutAWorker(t *testing.T) {
	t.Parallel()
	j := worker.NewJob(forebay.Delivery{}, func(*forebay.Progress, *forebay.LogLine) {})
	got, err := j.Once(t.Context(), "charge", func(context.Context) ([]byte, error) { return []byte("1"), nil })
	if string(got) != "1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
