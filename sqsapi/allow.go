package sqsapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"reflect"
	"strings"

	"github.com/forebayhq/forebay/sqsapi/sign"
)

// caller is who sends a request.
type caller struct {
	id  string    // of the access key; empty: unsigned
	key *sign.Key // nil: all rights
}

func (c caller) may(a sign.Action, queue string) bool {
	return c.key == nil || c.key.May(a, queue)
}

// begin judges what can be judged before the body is read. A nil claim without an
// error is an unsigned request that may pass.
func (c *call) begin() (*sign.Claim, error) {
	keys := c.front.cfg.Keys
	if c.front.cfg.Unsigned && (keys == nil || keys.Empty()) {
		return nil, local(c.r)
	}
	if keys == nil {
		return nil, fault(sign.Missing, "This server has no access keys and lets no unsigned request in.")
	}
	claim, err := keys.Begin(c.r)
	return claim, asRefusal(err)
}

// identify judges the rest of a signature.
func (c *call) identify(claim *sign.Claim, body []byte) error {
	if claim == nil {
		return nil
	}
	var hosts []string
	if public := c.front.public; public != nil {
		hosts = append(hosts, public.Host)
	}
	key, err := claim.Finish(body, hosts...)
	if err != nil {
		return asRefusal(err)
	}
	c.caller = caller{id: key.ID, key: &key}
	return nil
}

func asRefusal(err error) error {
	var r *sign.Refusal
	if errors.As(err, &r) {
		return fault(r.Code, "%s.", strings.ToUpper(r.Text[:1])+r.Text[1:])
	}
	return err
}

// local tells whether a request comes from a program on this machine. A proxy here
// would make everybody look local; and a page of any web site may send forms to
// loopback addresses from the browser of whoever looks at it, but cannot keep the
// browser from saying so.
func local(r *http.Request) error {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return fault(sign.Missing, "Requests without a signature are accepted from this machine only. Sign with an access key of this server.")
	}
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if len(r.Header[name]) > 0 {
			return fault(sign.Missing, "Requests without a signature are not accepted through a proxy (there is a header %s). Sign with an access key of this server.", name)
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if len(r.Header["Origin"]) > 0 || site != "" && site != "none" {
		return fault(sign.Missing, "Requests without a signature are not accepted from web pages. Sign with an access key of this server.")
	}
	return nil
}

// permit finds the queues that an input names and holds the caller's rights against
// them. It leaves bare names in the input, so that what was judged is what is used.
func (c *call) permit(in any) error {
	v := reflect.ValueOf(in).Elem()
	for _, f := range c.action.in.fields {
		var name string
		switch f.json {
		case "QueueUrl":
			url := v.Field(f.index)
			if name = queueName(url.String()); name == "" {
				name = pathQueue(c.r.URL.Path)
			}
			if name == "" {
				return fault("MissingRequiredParameterException", "The request must contain the parameter QueueUrl.")
			}
			url.SetString(name)
		case "QueueName":
			name = v.Field(f.index).String()
		case "SourceArn", "DestinationArn":
			name = arnName(v.Field(f.index).String())
		case "TaskHandle":
			handle := v.Field(f.index)
			again, source := taskSource(handle.String())
			handle.SetString(again)
			name = arnName(source)
		default:
			continue
		}
		if name != "" && !c.caller.may(c.action.needs, name) {
			return c.denied(name)
		}
	}
	return nil
}

// taskSource finds the queue of a move task in its handle, and gives the handle as it
// was understood. One that is none is left for the service to refuse.
func taskSource(handle string) (again, arn string) {
	var h struct {
		Task   string `json:"taskId"`
		Source string `json:"sourceArn"`
	}
	raw, err := base64.StdEncoding.DecodeString(handle)
	if err != nil || json.Unmarshal(raw, &h) != nil {
		return "-", ""
	}
	raw, err = json.Marshal(h)
	if err != nil {
		return "-", ""
	}
	return base64.StdEncoding.EncodeToString(raw), h.Source
}

func (c *call) denied(name string) error {
	rights := strings.Join(c.action.needs.Names(), ", ")
	return fault("AccessDenied", "The access key %s may not %s on the queue %s: it needs the right %s there.", c.caller.id, c.action.name, printable(name), rights)
}
