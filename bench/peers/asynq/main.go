// Command asynq is a peer that `make bench` compares jobs with: it adds no-op jobs,
// so many at a time, works them in the same process, and prints "done".
//
//	asynq PORT JOBS INFLIGHT CONCURRENCY
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: asynq PORT JOBS INFLIGHT CONCURRENCY")
	}
	var n [4]int
	for i, arg := range os.Args[1:] {
		var err error
		if n[i], err = strconv.Atoi(arg); err != nil {
			log.Fatal(err)
		}
	}
	if err := run(n[0], n[1], n[2], n[3]); err != nil {
		log.Fatal(err)
	}
}

func run(port, jobs, inflight, concurrency int) error {
	redis := asynq.RedisClientOpt{Addr: fmt.Sprintf("127.0.0.1:%d", port)}
	done := make(chan struct{})
	var handled atomic.Int64
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: concurrency, LogLevel: asynq.ErrorLevel, TaskCheckInterval: 50 * time.Millisecond,
	})
	err := server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if handled.Add(1) == int64(jobs) {
			close(done)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	client := asynq.NewClient(redis)
	payload := []byte(`{"note":"` + strings.Repeat("x", 280) + `"}`)
	var left atomic.Int64
	left.Store(int64(jobs))
	var producers sync.WaitGroup
	failed := make(chan error, inflight)
	for range inflight {
		producers.Go(func() {
			for left.Add(-1) >= 0 {
				// A day of retention: what is compared keeps its finished jobs too.
				if _, err := client.Enqueue(asynq.NewTask("noop", payload), asynq.Retention(24*time.Hour)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	producers.Wait()
	fmt.Println("added")
	select {
	case err := <-failed:
		return err
	case <-done:
	}
	fmt.Println("done")
	server.Shutdown()
	return client.Close()
}
