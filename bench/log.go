package bench

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// Log is the baseline of every durable write: a bare file, append, flush, answer.
// It groups as the engines do: a record that finds the log idle is flushed at
// once, and while a flush runs the next group gathers. It keeps no index and
// reads nothing back, so no queue can be faster with the same grouping.
type Log struct {
	file    *os.File
	waiting chan entry // closed by Close, after the last Append
	done    sync.WaitGroup
}

type entry struct {
	record []byte
	answer chan error
}

// maxGroup bounds how many records one flush takes.
const maxGroup = 4096

// OpenLog makes a new log file.
func OpenLog(path string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("bench: log: %w", err)
	}
	l := &Log{file: file, waiting: make(chan entry, maxGroup)}
	l.done.Go(l.write)
	return l, nil
}

// Append returns when the record is on the disk. It may be called concurrently.
func (l *Log) Append(record []byte) error {
	answer := make(chan error, 1)
	l.waiting <- entry{record, answer}
	return <-answer
}

// Close waits for the writer. No Append may run or follow.
func (l *Log) Close() error {
	close(l.waiting)
	l.done.Wait()
	return errors.Join(l.file.Close(), os.Remove(l.file.Name()))
}

func (l *Log) write() {
	var group []entry
	var buf []byte
	for first := range l.waiting {
		group, buf = append(group[:0], first), append(buf[:0], first.record...)
		for len(l.waiting) > 0 && len(group) < maxGroup {
			next := <-l.waiting
			group, buf = append(group, next), append(buf, next.record...)
		}
		_, err := l.file.Write(buf)
		if err == nil {
			err = flush(l.file)
		}
		for _, e := range group {
			e.answer <- err
		}
	}
}
