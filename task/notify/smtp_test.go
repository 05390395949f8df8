package notify_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// server is a real SMTP server on this machine, which keeps what it gets.
type server struct {
	address string
	roots   *x509.CertPool // that vouch for it

	refuse func(step, who string) error // nil: nothing is refused
	began  chan struct{}                // gets a value when a mail's content is asked for; nil: nobody looks

	mu       sync.Mutex
	mails    []received
	sessions []*session
}

type received struct {
	from, user string
	to         []string
	encrypted  bool
	text       []byte
}

// serve starts one: with or without STARTTLS, or with TLS from the start.
func serve(t *testing.T, starttls, implicit bool, refuse func(step, who string) error) *server {
	t.Helper()
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	defer cert.Close()
	s := &server{roots: x509.NewCertPool(), refuse: refuse}
	s.roots.AddCert(cert.Certificate())
	config := &tls.Config{Certificates: cert.TLS.Certificates}

	srv := smtp.NewServer(s)
	srv.Domain = "test"
	srv.AllowInsecureAuth = true
	srv.ErrorLog = log.New(io.Discard, "", 0)
	if starttls {
		srv.TLSConfig = config
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	if implicit {
		l = tls.NewListener(l, config)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(l)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return s
}

func (s *server) got() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mails
}

// NewSession is of go-smtp.
func (s *server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	n := &session{s: s, c: c}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = append(s.sessions, n)
	return n, nil
}

type session struct {
	s    *server
	c    *smtp.Conn
	mail received
	mech []string // that sign-in was tried with
}

func (n *session) check(step, who string) error {
	if n.s.refuse == nil {
		return nil
	}
	return n.s.refuse(step, who)
}

func (n *session) AuthMechanisms() []string { return []string{"PLAIN"} }

func (n *session) Auth(mech string) (sasl.Server, error) {
	n.mech = append(n.mech, mech)
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "forebay" || password != "hunter2" {
			return errors.New("no such user")
		}
		n.mail.user = user
		return nil
	}), nil
}

func (n *session) Mail(from string, _ *smtp.MailOptions) error {
	n.mail.from = from
	return n.check("mail", from)
}

func (n *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	n.mail.to = append(n.mail.to, to)
	return n.check("rcpt", to)
}

func (n *session) Data(r io.Reader) error {
	if n.s.began != nil {
		n.s.began <- struct{}{}
	}
	if err := n.check("data", ""); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		return err
	}
	n.mail.text = b.Bytes()
	_, n.mail.encrypted = n.c.TLSConnectionState()
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	n.s.mails = append(n.s.mails, n.mail)
	return nil
}

func (n *session) Reset()        { n.mail = received{user: n.mail.user} }
func (n *session) Logout() error { return nil }
