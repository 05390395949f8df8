package notify

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

// MailConfig is the server that mail is handed to.
type MailConfig struct {
	Server   string // host:port; empty: there is none
	User     string // empty: no sign-in
	Password string
	From     string         // the sender of mail that names none
	TLS      string         // required (the default), opportunistic, implicit or none
	Timeout  time.Duration  // of handing over one mail; 0: 1 min
	RootCAs  *x509.CertPool // nil: whom the system trusts
}

type mailer struct {
	cfg  MailConfig
	host string
	port int
}

func newMailer(cfg MailConfig) (*mailer, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.TLS == "" {
		cfg.TLS = "required"
	}
	host, text, err := net.SplitHostPort(cfg.Server)
	port, portErr := strconv.ParseUint(text, 10, 16)
	switch {
	case err != nil || portErr != nil || host == "" || port == 0:
		return nil, invalid("mail.server", "%q is not of the form host:port", cfg.Server)
	case cfg.Timeout < 0:
		return nil, invalid("mail.timeout", "%s; more than 0 is allowed", cfg.Timeout)
	case cfg.User == "" && cfg.Password != "":
		return nil, invalid("mail.user", "there is a password, and no user")
	}
	if cfg.From != "" {
		if _, err := mail.ParseAddress(cfg.From); err != nil {
			return nil, invalid("mail.from", "%q is no mail address", cfg.From)
		}
	}
	m := &mailer{cfg: cfg, host: host, port: int(port)}
	_, err = m.client(context.Background())
	return m, err
}

// client is of one mail: connections are not kept.
func (m *mailer) client(ctx context.Context) (*gomail.Client, error) {
	options := []gomail.Option{
		gomail.WithPort(m.port),
		gomail.WithTimeout(m.cfg.Timeout),
		gomail.WithTLSConfig(&tls.Config{ServerName: m.host, RootCAs: m.cfg.RootCAs, MinVersion: tls.VersionTLS12}),
		gomail.WithoutNoop(),
		gomail.WithDialContextFunc(m.dial(ctx)),
	}
	switch m.cfg.TLS {
	case "required":
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case "opportunistic":
		options = append(options, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	case "implicit":
		// TLS from the start is in dial: the library's own dialer could not be ended.
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS), gomail.WithSSL())
	case "none":
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		return nil, invalid("mail.tls", "%q; required, opportunistic, implicit and none are allowed", m.cfg.TLS)
	}
	if m.cfg.User != "" {
		// Over a connection in the clear, the library takes no way that shows the
		// password; that TLS from the start is not in the clear, it has to be told.
		way := gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover)
		if m.cfg.TLS == "implicit" {
			way = gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthCramMD5,
				gomail.SMTPAuthPlain, gomail.SMTPAuthLogin)
		}
		options = append(options, way, gomail.WithUsername(m.cfg.User), gomail.WithPassword(m.cfg.Password))
	}
	return gomail.NewClient(m.host, options...)
}

// dial makes connections that end with ctx, also in the midst of a command.
func (m *mailer) dial(ending context.Context) gomail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ending, func() { conn.Close() })
		if m.cfg.TLS == "implicit" {
			conn = tls.Client(conn, &tls.Config{ServerName: m.host, RootCAs: m.cfg.RootCAs, MinVersion: tls.VersionTLS12})
		}
		return conn, nil
	}
}

// sent is the result of a mail.
type sent struct {
	MessageID string `json:"messageId"`
	To        int    `json:"recipients"`
}

func (n *Notify) sendMail(ctx context.Context, j *worker.Job, data mailData) (sent, error) {
	if n.mail == nil {
		return sent{}, missing("mail", "mail.server")
	}
	if data.From == "" {
		data.From = n.cfg.Mail.From
	}
	msg, err := data.message(j.Key())
	if err != nil {
		return sent{}, err
	}
	recipients, err := msg.GetRecipients()
	if err != nil {
		return sent{}, task.BadData("to", "there is no recipient")
	}
	_, err = once(ctx, j, "mail", func(ctx context.Context) ([]byte, error) { return nil, n.mail.send(ctx, msg) })
	return sent{msg.GetMessageID(), len(recipients)}, err
}

// messageID is the same in every attempt, so that a mail that was handed over twice
// can be told. Ids of jobs may be of any form.
func messageID(id, from string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	if strings.Trim(id, plain) != "" || len(id) > 128 {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:16])
	}
	_, domain, _ := strings.Cut(from, "@")
	return id + "@" + domain
}

// send hands a mail over. It is done once the server has said that it has it: what
// comes after that is no failure.
func (m *mailer) send(ctx context.Context, msg *gomail.Msg) error {
	within, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	c, err := m.client(within)
	if err != nil {
		return err
	}
	conn, err := c.DialToSMTPClientWithContext(within)
	if err == nil {
		err = c.SendWithSMTPClient(conn, msg)
		_ = c.CloseWithSMTPClient(conn)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return refused(err)
}

// refused says what a server's refusal means: of this mail it is final where the
// server says so; of the connection or the sign-in it never is.
func refused(err error) error {
	cause := forebay.Cause{Code: "smtp"}
	var protocol *textproto.Error
	if errors.As(err, &protocol) {
		cause.Code = "smtp_" + strconv.Itoa(protocol.Code)
	}
	var send *gomail.SendError
	if errors.As(err, &send) && send.ErrorCode() > 0 {
		cause.Code = "smtp_" + strconv.Itoa(send.ErrorCode())
		cause.Detail = map[string]string{"step": send.Reason.String()}
		if s := send.EnhancedStatusCode(); s != "" {
			cause.Detail["status"] = s
		}
		if send.ErrorCode() >= 500 {
			return forebay.Permanent(forebay.Because(cause, fmt.Errorf("the mail server refused it: %w", err)))
		}
	}
	return forebay.Because(cause, fmt.Errorf("the mail server: %w", err))
}
