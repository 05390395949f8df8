package sqsapi

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

// queueName finds a queue's name in what clients call its URL: a URL, or the name.
func queueName(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

// arnName finds a queue's name in its ARN.
func arnName(s string) string { return s[strings.LastIndexByte(s, ':')+1:] }

// pathQueue finds the queue that a request's path names: /<account>/<queue>, behind
// any prefix.
func pathQueue(p string) string {
	p = strings.Trim(path.Clean("/"+p), "/")
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[i+1:]
	}
	return ""
}

// addressed makes the names of queues in an answer URLs that the client can reach.
func (c *call) addressed(out any) any {
	switch out := out.(type) {
	case *queue.QueueUrlOutput:
		out.QueueUrl = c.base() + url.PathEscape(out.QueueUrl)
	case *queue.ListQueuesOutput:
		out.QueueUrls = c.addresses(out.QueueUrls)
	case *queue.ListSourcesOutput:
		out.QueueUrls = c.addresses(out.QueueUrls)
	}
	return out
}

// addresses leaves out the queues that the caller has no right on.
func (c *call) addresses(names []string) []string {
	base := c.base()
	urls := make([]string, 0, len(names))
	for _, name := range names {
		if c.caller.may(whoever, name) {
			urls = append(urls, base+url.PathEscape(name))
		}
	}
	return urls
}

// base is what stands before a queue's name in its URL.
func (c *call) base() string {
	u := c.front.public
	if u == nil {
		u = &url.URL{Scheme: schemeOf(c.r), Host: hostOf(c.r)}
	}
	return u.String() + "/" + url.PathEscape(c.front.cfg.Account) + "/"
}

// What proxies say is believed here, since the answer goes to nobody but the client
// that sent it through them.

func schemeOf(r *http.Request) string {
	switch first(r.Header.Get("X-Forwarded-Proto")) {
	case "https":
		return "https"
	case "http":
		return "http"
	}
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

func hostOf(r *http.Request) string {
	host := first(r.Header.Get("X-Forwarded-Host"))
	if !isHost(host) {
		return r.Host
	}
	if port := first(r.Header.Get("X-Forwarded-Port")); isPort(port) && !hasPort(host) && !(port == "443" && schemeOf(r) == "https") && !(port == "80" && schemeOf(r) == "http") {
		host += ":" + port
	}
	return host
}

// first is the entry of a list that the proxy nearest to the client has made.
func first(list string) string {
	s, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(s)
}

func isHost(s string) bool {
	return s != "" && len(s) <= 255 && !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(".-_:[]", c))
	})
}

func isPort(s string) bool {
	return s != "" && len(s) <= 5 && !strings.ContainsFunc(s, func(c rune) bool { return c < '0' || c > '9' })
}

func hasPort(host string) bool {
	return strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']')
}
