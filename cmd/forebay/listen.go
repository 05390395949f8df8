package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// listen opens the port. It is done before the data folder is touched, so that a
// port that is taken leaves everything as it was.
func listen(s *config.Settings, keys bool) (net.Listener, error) {
	addr := s.Address(keys)
	if !keys && !s.Server.Insecure && !isLoopback(addr) {
		e := forebay.Errorf(forebay.CodeUnauthorized, "listen "+addr, "this address can be reached from elsewhere, and no key exists")
		e.Hint = "add a key first (forebay keys add NAME), listen on 127.0.0.1, or say --insecure"
		return nil, cannotStart(e)
	}
	l, err := net.Listen("tcp", addr)
	if err == nil {
		return l, nil
	}
	e := forebay.Errorf(forebay.CodeUnavailable, "listen "+addr, "%w", reasonOf(err))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.Code, e.Hint = forebay.CodeInUse, "another program listens there; name another port: --listen 127.0.0.1:0 takes any free one"
		if f, err := readServerFile(s.Data.Dir); err == nil && sameAddress(f.URL, addr) {
			e.Hint = fmt.Sprintf("a server runs there on this data folder already, as process %d", f.PID)
		}
	case errors.Is(err, syscall.EACCES):
		e.Hint = "this user may not take that port; one above 1023 needs no rights"
	}
	return nil, cannotStart(e)
}

// reasonOf takes the wrappings off a network error: the address is said already.
func reasonOf(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func sameAddress(url, addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	return err == nil && len(url) > len(port) && url[len(url)-len(port)-1:] == ":"+port
}
