package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/internal/front"
)

// issuer makes certificates.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func (i *issuer) make(t *testing.T, name string, ca bool) (cert *x509.Certificate, key *ecdsa.PrivateKey, certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	by, byKey := of, key
	if i != nil {
		by, byKey = i.cert, i.key
	}
	der, err := x509.CreateCertificate(rand.Reader, of, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	i.cert, i.key, i.pem, _ = (*issuer)(nil).make(t, "issuer", true)
	return i
}

// forget lets the next client look at the files.
func (c *certificates) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked = time.Time{}
}

// caller makes calls of a server: two that its front serves, one that net/http does. It gives
// their answers and the name of the server's certificate.
func caller(t *testing.T, address string, roots *x509.CertPool) func(scheme string, shown, key []byte) (answer, server string, err error) {
	return func(scheme string, shown, key []byte) (answer, server string, err error) {
		cfg := &tls.Config{RootCAs: roots}
		if shown != nil {
			pair, err := tls.X509KeyPair(shown, key)
			if err != nil {
				t.Fatal(err)
			}
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg}, Timeout: 10 * time.Second}
		defer c.CloseIdleConnections()
		for _, method := range []string{http.MethodPost, http.MethodPost, http.MethodGet} {
			req, err := http.NewRequestWithContext(t.Context(), method, scheme+"://"+address+"/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(req)
			if err != nil {
				return answer, server, err
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				return answer, server, err
			}
			answer += string(body) + " "
			if resp.TLS != nil {
				server = resp.TLS.PeerCertificates[0].Subject.CommonName
			}
		}
		return answer, server, nil
	}
}

func TestTLSWithReloadAndClientCertificates(t *testing.T) {
	t.Parallel()
	ours, theirs, dir := newIssuer(t), newIssuer(t), t.TempDir()
	put := func(name string, b []byte, at time.Time) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	then := time.Now().Add(-time.Minute)
	_, _, certPEM, keyPEM := ours.make(t, "first", false)
	var log bytes.Buffer
	certs, err := openCertificates(&config.Settings{Server: config.Server{
		TLSCert: put("cert", certPEM, then), TLSKey: put("key", keyPEM, then), TLSClientCA: put("ca", ours.pem, then),
	}}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// The server as it runs: the front serves the POST, net/http the GET.
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Method) })
	f := front.New(&http.Server{Handler: h}, map[string]http.Handler{"/x": h}, nil)
	served := make(chan error, 1)
	go func() { served <- f.Serve(certs.over(l)) }()
	t.Cleanup(func() { f.Close(); <-served })

	_, _, good, goodKey := ours.make(t, "client", false)
	_, _, bad, badKey := theirs.make(t, "client", false)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ours.pem)
	call := caller(t, l.Addr().String(), roots)
	if answer, server, err := call("https", good, goodKey); err != nil || answer != "POST POST GET " || server != "first" {
		t.Errorf("%q of %q, %v", answer, server, err)
	}
	if answer, _, err := call("http", nil, nil); err != nil || answer != "POST POST GET " {
		t.Errorf("plain HTTP of this machine: %q, %v", answer, err)
	}
	for name, shown := range map[string][2][]byte{"no certificate": {}, "one of somebody else": {bad, badKey}} {
		if answer, _, err := call("https", shown[0], shown[1]); err == nil {
			t.Errorf("with %s: %q", name, answer)
		}
	}

	put("cert", []byte("half"), time.Now())
	certs.forget()
	if _, server, err := call("https", good, goodKey); err != nil || server != "first" {
		t.Errorf("with a broken file: %q, %v", server, err)
	}
	_, _, certPEM, keyPEM = ours.make(t, "second", false)
	put("key", keyPEM, time.Now().Add(time.Second))
	put("cert", certPEM, time.Now().Add(time.Second))
	certs.forget()
	if _, server, err := call("https", good, goodKey); err != nil || server != "second" {
		t.Errorf("after the renewal: %q, %v", server, err)
	}
	if !bytes.Contains(log.Bytes(), []byte("cannot be used")) || !bytes.Contains(log.Bytes(), []byte("was renewed")) {
		t.Error(log.String())
	}
}

func TestWhoComesFromElsewhereSpeaksTLS(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]bool{"127.0.0.1": true, "10.0.0.5": true, "10.0.0.6": false, "::1": true} {
		c := address{&net.TCPAddr{IP: net.ParseIP(from)}, &net.TCPAddr{IP: net.ParseIP("10.0.0.5")}}
		if got := fromHere(c); got != want {
			t.Errorf("%s is from here: %v", from, got)
		}
	}
}

type address struct{ from, to net.Addr }

func (a address) RemoteAddr() net.Addr { return a.from }
func (a address) LocalAddr() net.Addr  { return a.to }
