//go:build !unix

package main

import "errors"

func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }

func openFiles() (uint64, error) { return 0, errors.ErrUnsupported }

func keepPrivate() {}
