package task_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

// A program with a handler of its own: the data of a job is decoded into the
// function's type, and what it returns is the job's result.
func Example() {
	type thumbnail struct{ Photo, Size string }
	var mux task.Mux
	mux.Handle("thumbnail", task.Func(func(_ context.Context, j *worker.Job, t thumbnail) (string, error) {
		j.Progress("resize", 50, t.Photo)
		return "/thumbs/" + t.Size + "/" + t.Photo, nil
	}))

	b, clean := openBroker()
	defer clean()
	ctx, stop := context.WithCancel(context.Background())
	_, err := b.Send(ctx, []forebay.Message{{
		ID: "job-1", Queue: "images", Kind: "thumbnail", Payload: []byte(`{"Photo":"cat.jpg","Size":"200"}`), Job: &forebay.JobOptions{},
	}})
	must(err)
	w, err := worker.New(b, worker.Config{Queue: "images", Jobs: &mux, Observe: worker.Observe{Settled: func(worker.Outcome) { stop() }}})
	must(err)
	must(w.Run(ctx))

	job, err := b.Job(context.Background(), "job-1")
	must(err)
	fmt.Printf("%s, %s\n", job.State, job.Result)
	// Output: completed, "/thumbs/200/cat.jpg"
}

func openBroker() (b *broker.Broker, clean func()) {
	folder, err := os.MkdirTemp("", "forebay")
	must(err)
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(folder, "queue.db")})
	must(err)
	b, err = broker.New(e, broker.Config{})
	must(err)
	return b, func() {
		must(b.Close())
		must(os.RemoveAll(folder))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
