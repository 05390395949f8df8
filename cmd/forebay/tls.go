package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// certificates are what the listeners speak TLS with. Their files are looked at again
// when a client comes, at most every recheck: a renewed certificate needs no restart,
// and one that cannot be read leaves the one before in use.
type certificates struct {
	cert, key, clients string // files; clients may be empty
	log                *slog.Logger

	mu      sync.Mutex // guards all below
	looked  time.Time
	stamp   string
	current *tls.Config
}

const recheck = 5 * time.Second

// openCertificates reads the certificates that the settings name; nil: plain HTTP.
func openCertificates(s *config.Settings, log *slog.Logger) (*certificates, error) {
	c := &certificates{cert: s.Server.TLSCert, key: s.Server.TLSKey, clients: s.Server.TLSClientCA, log: log}
	if c.cert == "" {
		return nil, nil
	}
	c.stamp = c.stamped()
	current, err := c.load()
	if err != nil {
		return nil, cannotStart(forebay.Errorf(forebay.CodeInvalid, "server.tlsCert", "%w", err))
	}
	c.current, c.looked = current, time.Now()
	return c, nil
}

func (c *certificates) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, err
	}
	// The front speaks HTTP/1.1 only.
	t := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if c.clients == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.clients)
	if err != nil {
		return nil, err
	}
	t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !t.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New(c.clients + " has no certificate in it")
	}
	return t, nil
}

// stamped changes when a file does.
func (c *certificates) stamped() (stamp string) {
	for _, name := range []string{c.cert, c.key, c.clients} {
		if info, err := os.Stat(name); err == nil {
			stamp += info.ModTime().String() + info.Mode().String()
		}
		stamp += "\n"
	}
	return stamp
}

// forClient is the tls.Config of a new connection.
func (c *certificates) forClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= recheck {
		c.looked = now
		c.renew()
	}
	return c.current, nil
}

func (c *certificates) renew() {
	stamp := c.stamped()
	if stamp == c.stamp {
		return
	}
	current, err := c.load()
	if err != nil { // half of it may be written: it is looked at again
		c.log.Warn("the renewed certificate cannot be used; the one before stays", "error", err)
		return
	}
	c.stamp, c.current = stamp, current
	c.log.Info("the certificate was renewed")
}

// over puts TLS on a listener. Whoever comes from this machine may speak plain HTTP: the
// sub-commands do, and what guards the server is a key in any case.
func (c *certificates) over(l net.Listener) net.Listener {
	if c == nil {
		return l
	}
	return secured{l, &tls.Config{GetConfigForClient: c.forClient}}
}

type secured struct {
	net.Listener
	config *tls.Config
}

func (s secured) Accept() (net.Conn, error) {
	raw, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if fromHere(raw) {
		return &either{Conn: raw, config: s.config}, nil
	}
	return tls.Server(raw, s.config), nil
}

// fromHere tells connections of this machine.
func fromHere(c interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}) bool {
	from, ok := c.RemoteAddr().(*net.TCPAddr)
	to, known := c.LocalAddr().(*net.TCPAddr)
	return ok && known && (from.IP.IsLoopback() || from.IP.Equal(to.IP))
}

// either is a connection whose first byte tells whether it speaks TLS.
type either struct {
	net.Conn
	config *tls.Config
	spoken atomic.Pointer[net.Conn] // nil: nothing was read yet
}

const handshake = 0x16 // what a TLS record of a handshake begins with

func (e *either) Read(p []byte) (int, error) {
	if c := e.spoken.Load(); c != nil {
		return (*c).Read(p)
	}
	first := make([]byte, 1)
	if n, err := e.Conn.Read(first); n == 0 {
		return 0, err
	}
	var c net.Conn = &begun{Conn: e.Conn, first: first}
	if first[0] == handshake {
		c = tls.Server(c, e.config)
	}
	e.spoken.Store(&c)
	return c.Read(p)
}

func (e *either) Write(p []byte) (int, error) {
	if c := e.spoken.Load(); c != nil {
		return (*c).Write(p)
	}
	return e.Conn.Write(p)
}

func (e *either) Close() error {
	if c := e.spoken.Load(); c != nil {
		return (*c).Close()
	}
	return e.Conn.Close()
}

// begun is a connection whose first bytes were read already.
type begun struct {
	net.Conn
	first []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.first)
	b.first = b.first[n:]
	return n, nil
}
