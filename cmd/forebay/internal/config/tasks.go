package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Handler settings: a kind of job whose handler is a program, or an address that
// jobs are pushed to.
type Handler struct {
	Queue   string
	Command []string
	URL     string
	Secret  string

	Title       string
	Description string
	Schema      string // a file
	Result      string // a file
}

// Report settings: a query that jobs can ask for by its name.
type Report struct {
	Query  string
	Params []string
	URL    string
}

// History settings: how much is kept of what happened to jobs, and of what was sent.
type History struct {
	MaxAge   time.Duration
	MaxRows  int64
	MaxBytes int64
}

// Flows settings: where files of flows lie.
type Flows struct {
	Dir      string
	FourEyes bool
}

// Storage settings: where the results of jobs lie.
type Storage struct {
	URL    string
	MaxAge time.Duration
}

// Images settings: the image service.
type Images struct {
	MaxBytes  int64
	MaxPixels int64
	Backend   string
	WarmURL   string
}

// Mail settings: the server that mail is handed to.
type Mail struct {
	Server   string
	User     string
	Password string
	From     string
	TLS      string
}

// Webhooks settings: what holds for addresses that jobs name.
type Webhooks struct {
	Secret  string
	Private bool
}

// Alerts settings: who is told that a job has failed for good.
type Alerts struct {
	Enabled      bool
	Mail         string
	Webhook      string
	Growth       int64
	GrowthWindow time.Duration
}

func (s *Settings) taskTable() []*setting {
	h, st, im := &s.History, &s.Storage, &s.Images
	return []*setting{
		{key: "history.maxAge", value: duration(&h.MaxAge, 7*day, time.Minute, 3650*day),
			doc: "How long to keep what happened to jobs."},
		{key: "history.maxRows", value: number(&h.MaxRows, 10_000_000, 1000, 1_000_000_000),
			doc: "The most events of jobs to keep; the oldest leave first."},
		{key: "history.maxBytes", value: size(&h.MaxBytes, 1*gib, 1*mib, 100_000*gib),
			doc: "The most bytes of messages to keep after they were settled, of all queues together; the oldest leave first. How long: queues.<name>.historyAge."},

		{key: "flows.fourEyes", value: flag(&s.Flows.FourEyes, false),
			doc: "A version of a flow runs only when somebody other than its author has approved it (forebay flow release, the console). The latest is then the latest of these."},
		{key: "flows.dir", value: text(&s.Flows.Dir, "", 1024),
			doc: "A folder with files of flows (*.yaml, *.yml, *.json). At the start each becomes the next version of its flow, unless the latest says the same. Empty: none."},

		{key: "storage.url", value: storageURL(&st.URL),
			doc: "Where uploads and results lie. Empty: the folder files in the data folder. The keys of S3 come from the AWS SDK's own chain."},
		{key: "storage.maxAge", value: duration(&st.MaxAge, 0, 0, 36500*day),
			doc: "How long to keep uploads and results. 0: for ever."},

		{key: "images.maxBytes", value: size(&im.MaxBytes, 32*mib, 1*kib, 1*gib),
			doc: "The largest upload of an image (413 beyond)."},
		{key: "images.maxPixels", value: number(&im.MaxPixels, 50_000_000, 1, 1_000_000_000),
			doc: "The most pixels of an image; a larger one fails before it is decoded."},
		{key: "images.backend", value: choice(&im.Backend, "auto", "vips", "go"),
			doc: "What works on images: the tools of libvips, or the built-in code. With auto, libvips where it is installed (forebay doctor tells)."},
		{key: "images.warmUrl", value: webURL(&im.WarmURL),
			doc: "The address of a CDN before the results: each is asked for once, so that the CDN has it. Empty: no warm-up."},
	}
}

func (s *Settings) notifyTable() []*setting {
	m, w, a := &s.Mail, &s.Webhooks, &s.Alerts
	return []*setting{
		{key: "mail.server", value: text(&m.Server, "", 256),
			doc: "The SMTP server, host:port. Empty: jobs of the kind mail fail, and say so."},
		{key: "mail.user", value: text(&m.User, "", 256), doc: "The user at the SMTP server. Empty: no sign-in."},
		{key: "mail.password", secret: true, value: text(&m.Password, "", 1024), doc: "The password of that user."},
		{key: "mail.from", value: text(&m.From, "", 256), doc: "The sender of mail that names none."},
		{key: "mail.tls", value: choice(&m.TLS, "required", "opportunistic", "implicit", "none"),
			doc: "How the connection to the SMTP server is protected: STARTTLS required or if offered, TLS from the start, or not at all."},

		{key: "webhooks.secret", secret: true, value: text(&w.Secret, "", 256),
			doc: "The secret that webhooks are signed with (Standard Webhooks: whsec_ and base64). Empty: one is made in the data folder."},
		{key: "webhooks.private", value: flag(&w.Private, false),
			doc: "Allow jobs to name addresses of this machine and of private networks."},

		{key: "alerts.enabled", value: flag(&a.Enabled, true),
			doc: "Put a job of the kind alert on the queue notifications when a job fails for good, times out or is overdue."},
		{key: "alerts.mail", value: text(&a.Mail, "", 1024), doc: "Who gets alerts by mail, separated by commas. Empty: nobody."},
		{key: "alerts.webhook", value: webURL(&a.Webhook), doc: "The address that alerts are posted to. Empty: none."},
		{key: "alerts.growth", value: number(&a.Growth, 100, 0, 1_000_000_000),
			doc: "Put an alert when the dead letters of a queue grow by so many within alerts.growthWindow. 0: no such alert."},
		{key: "alerts.growthWindow", value: duration(&a.GrowthWindow, 10*time.Minute, time.Minute, day),
			doc: "See alerts.growth."},
	}
}

func handlerTable(kind string) []*setting {
	h := &Handler{}
	at := "handlers." + kind + "."
	return []*setting{
		{key: at + "queue", handler: h, value: text(&h.Queue, "jobs", 80), doc: "The queue that is worked for this kind."},
		{key: at + "command", handler: h, value: words(&h.Command),
			doc: "The program to run for a job: its data as JSON on stdin, lines of progress and the result on stdout."},
		{key: at + "url", handler: h, value: webURL(&h.URL), doc: "Or the address to post the job to, signed as Standard Webhooks says."},
		{key: at + "secret", handler: h, secret: true, value: text(&h.Secret, "", 256), doc: "The secret to sign with. Empty: webhooks.secret."},
		{key: at + "title", handler: h, value: text(&h.Title, "", 200), doc: "What the console calls it."},
		{key: at + "description", handler: h, value: text(&h.Description, "", 4096), doc: "What it does, for people to read."},
		{key: at + "schema", handler: h, value: text(&h.Schema, "", 4096),
			doc: "A file with the JSON Schema of its data: forms are made of it, flows are checked against it, and with \"x-enforce\": true in it jobs that do not fit are refused."},
		{key: at + "result", handler: h, value: text(&h.Result, "", 4096), doc: "A file with the JSON Schema of what it gives."},
	}
}

func reportTable(name string) []*setting {
	r := &Report{}
	at := "reports." + name + "."
	return []*setting{
		{key: at + "query", report: r, value: text(&r.Query, "", 1<<16), doc: "The SQL query."},
		{key: at + "params", report: r, value: words(&r.Params), doc: "Its parameters in order, each as name:type; types are text, int, float, bool, date and time."},
		{key: at + "url", report: r, secret: true, value: databaseURL(&r.URL), doc: "The PostgreSQL to ask. Empty: where the events are written."},
	}
}

// words is a list: a YAML list, a JSON list, or words separated by spaces.
func words(p *[]string) value {
	return value{
		get: func() string {
			if len(*p) == 0 {
				return ""
			}
			b, _ := json.Marshal(*p) // strings always can
			return string(b)
		},
		allowed: "a list of up to 64 words",
		list:    true,
		set: func(s string) error {
			list := strings.Fields(s)
			if strings.HasPrefix(s, "[") {
				list = nil
				if err := json.Unmarshal([]byte(s), &list); err != nil {
					return fmt.Errorf("is not a list")
				}
			}
			if len(list) > 64 {
				return fmt.Errorf("has %d words", len(list))
			}
			*p = list
			return nil
		},
	}
}

func webURL(p *string) value { return anyURL(p, "https://host/path, or nothing", "http", "https") }

func storageURL(p *string) value {
	return anyURL(p, "s3://bucket?region=…, file:///folder, or nothing", "s3", "file")
}

func anyURL(p *string, allowed string, schemes ...string) value {
	return value{
		get:     func() string { return *p },
		allowed: allowed,
		set: func(s string) error {
			u, err := url.Parse(s)
			// The text of a wrong address may hold a password: it is not shown.
			if s != "" && (err != nil || !slices.Contains(schemes, u.Scheme)) {
				return fmt.Errorf("is no such address")
			}
			*p = s
			return nil
		},
	}
}
