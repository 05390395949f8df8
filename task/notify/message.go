package notify

import (
	"fmt"
	"net/mail"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	gomail "github.com/wneessen/go-mail"

	"github.com/forebayhq/forebay/task"
)

// Bounds of a mail, beyond that of a job's data.
const (
	maxRecipients  = 100
	maxHeaders     = 32
	maxHeaderBytes = 900 // a line of a mail has 998 at most
)

// mailData is the data of a mail.
type mailData struct {
	To      addresses         `json:"to"`
	CC      addresses         `json:"cc"`
	From    string            `json:"from"`
	ReplyTo string            `json:"replyTo"`
	Subject string            `json:"subject"`
	Text    string            `json:"text"`
	HTML    string            `json:"html"`
	Headers map[string]string `json:"headers"`
}

// addresses are one or a list.
type addresses []string

// UnmarshalJSONFrom takes a string as well as a list.
func (a *addresses) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == '"' {
		var one string
		if err := json.UnmarshalDecode(d, &one); err != nil {
			return err
		}
		*a = addresses{one}
		return nil
	}
	return json.UnmarshalDecode(d, (*[]string)(a))
}

// message checks the data and writes the mail.
func (d *mailData) message(id string) (*gomail.Msg, error) {
	from, err := address("from", d.From)
	if d.From == "" {
		return nil, missing("the sender of mail", "mail.from")
	}
	if err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	msg := gomail.NewMsg()
	msg.FromMailAddress(from)
	to, err := parsed("to", d.To)
	if err != nil {
		return nil, err
	}
	msg.ToMailAddress(to...)
	cc, err := parsed("cc", d.CC)
	if err != nil {
		return nil, err
	}
	if len(cc) > 0 {
		msg.CcMailAddress(cc...)
	}
	if d.ReplyTo != "" {
		reply, err := address("replyTo", d.ReplyTo)
		if err != nil {
			return nil, err
		}
		msg.ReplyToMailAddress(reply)
	}
	msg.Subject(d.Subject)
	for name, value := range d.Headers {
		msg.SetGenHeader(gomail.Header(name), value)
	}
	msg.SetMessageIDWithValue(messageID(id, from.Address))
	msg.SetDate()
	switch {
	case d.Text != "" && d.HTML != "":
		msg.SetBodyString(gomail.TypeTextPlain, d.Text)
		msg.AddAlternativeString(gomail.TypeTextHTML, d.HTML)
	case d.HTML != "":
		msg.SetBodyString(gomail.TypeTextHTML, d.HTML)
	default:
		msg.SetBodyString(gomail.TypeTextPlain, d.Text)
	}
	return msg, nil
}

func (d *mailData) check() error {
	switch {
	case len(d.To) == 0:
		return task.BadData("to", "no recipient is named")
	case len(d.To)+len(d.CC) > maxRecipients:
		return task.BadData("to", "%d recipients; up to %d are allowed", len(d.To)+len(d.CC), maxRecipients)
	case d.Text == "" && d.HTML == "":
		return task.BadData("text", "there is neither text nor html")
	case len(d.Headers) > maxHeaders:
		return task.BadData("headers", "%d headers; up to %d are allowed", len(d.Headers), maxHeaders)
	}
	if err := line("subject", d.Subject); err != nil {
		return err
	}
	for name, value := range d.Headers {
		if !free(name) {
			return task.BadData("headers."+clean(name), "this header is not a job's to set")
		}
		if err := line("headers."+name, value); err != nil {
			return err
		}
	}
	return nil
}

// line refuses what could end a header and begin another one.
func line(field, text string) error {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return task.BadData(field, "control characters, such as line breaks, are not allowed")
	}
	if len(text) > maxHeaderBytes {
		return task.BadData(field, "%d bytes; up to %d are allowed", len(text), maxHeaderBytes)
	}
	return nil
}

// free tells whether a header may be set: those that are made of other fields, or
// that servers write, may not.
func free(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, r := range name {
		if r <= ' ' || r > '~' || r == ':' {
			return false
		}
	}
	lower := strings.ToLower(name)
	switch lower {
	case "from", "to", "cc", "bcc", "sender", "reply-to", "subject", "date", "message-id", "mime-version", "return-path",
		"received", "dkim-signature", "authentication-results":
		return false
	}
	return !strings.HasPrefix(lower, "content-") && !strings.HasPrefix(lower, "resent-") && !strings.HasPrefix(lower, "arc-")
}

func parsed(field string, list addresses) ([]*mail.Address, error) {
	out := make([]*mail.Address, len(list))
	for i, text := range list {
		var err error
		if out[i], err = address(fmt.Sprintf("%s.%d", field, i), text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func address(field, text string) (*mail.Address, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || len(text) > 320 || strings.ContainsFunc(text, unicode.IsControl) || strings.ContainsFunc(a.Name+a.Address, unicode.IsControl) {
		return nil, task.BadData(field, "%q is no mail address", clean(text))
	}
	return a, nil
}

// clean makes one bounded line of a text.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	return strings.ToValidUTF8(text[:min(len(text), 300)], "")
}
