//go:build linux

// Command run starts a private PostgreSQL server, prints the URL of an empty
// database as its only line and runs until its standard input is closed. It is
// for scripts: benchmarks, end-to-end tests, a look by hand.
//
// Each line that it reads is an order: stop, kill, start, pause, resume; it is
// answered by "ok" or by the error.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/forebayhq/forebay/internal/pgtest"
)

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	s, err := pgtest.New(ctx, pgtest.Config{})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	url, err := s.Create(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, url)
	orders := bufio.NewScanner(in)
	for orders.Scan() {
		if err := obey(ctx, s, orders.Text()); err != nil {
			fmt.Fprintln(out, err)
			continue
		}
		fmt.Fprintln(out, "ok")
	}
	return orders.Err()
}

func obey(ctx context.Context, s *pgtest.Server, order string) error {
	switch order {
	case "stop":
		s.Stop()
	case "kill":
		s.Kill()
	case "start":
		return s.Start(ctx)
	case "pause":
		return s.Pause()
	case "resume":
		return s.Resume()
	default:
		return fmt.Errorf("unknown order %q: stop, kill, start, pause, resume", order)
	}
	return nil
}
