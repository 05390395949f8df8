package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

// Bounds of an inbox message.
const (
	maxUsers = 100
	maxTitle = 200
	maxText  = 4096
)

type webhookData struct {
	URL  string         `json:"url"`
	Body jsontext.Value `json:"body"`
}

// sendWebhook gives the answer as its result, where it is JSON.
func (n *Notify) sendWebhook(ctx context.Context, j *worker.Job, data webhookData) (jsontext.Value, error) {
	switch {
	case n.cfg.Webhook == nil:
		return nil, missing("webhooks", "webhooks.secret")
	case data.URL == "":
		return nil, task.BadData("url", "there is no address")
	case len(data.Body) == 0:
		return nil, task.BadData("body", "there is nothing to post")
	}
	answer, err := once(ctx, j, "webhook", func(ctx context.Context) ([]byte, error) {
		return n.cfg.Webhook.Post(ctx, data.URL, j.Key(), data.Body)
	})
	result := jsontext.Value(answer)
	if !result.IsValid() {
		result = jsontext.Value("null")
	}
	return result, err
}

type inboxData struct {
	User  string         `json:"user"`
	Users []string       `json:"users"`
	Title string         `json:"title"`
	Text  string         `json:"text"`
	URL   string         `json:"url"`
	Data  jsontext.Value `json:"data"`
}

// note is what lies in an inbox.
type note struct {
	Kind  string         `json:"kind"` // inbox, or alert
	Title string         `json:"title"`
	Text  string         `json:"text,omitempty"`
	URL   string         `json:"url,omitempty"`
	Data  jsontext.Value `json:"data,omitempty"`
}

type delivered struct {
	Users int `json:"users"`
}

func (n *Notify) sendInbox(ctx context.Context, j *worker.Job, d inboxData) (delivered, error) {
	users := d.Users
	if d.User != "" {
		users = append([]string{d.User}, users...)
	}
	switch {
	case n.cfg.Inbox == nil:
		return delivered{}, missing("the inbox", "inbox")
	case len(users) == 0:
		return delivered{}, task.BadData("user", "no user is named")
	case len(users) > maxUsers:
		return delivered{}, task.BadData("users", "%d users; up to %d are allowed", len(users), maxUsers)
	case d.Title == "" || len(d.Title) > maxTitle:
		return delivered{}, task.BadData("title", "%d bytes; 1 to %d are allowed", len(d.Title), maxTitle)
	case len(d.Text) > maxText:
		return delivered{}, task.BadData("text", "%d bytes; up to %d are allowed", len(d.Text), maxText)
	case !safeLink(d.URL):
		return delivered{}, task.BadData("url", "it is neither a path of the application nor an address of the form https://host/path")
	}
	return delivered{len(users)}, n.put(ctx, j, users, note{KindInbox, d.Title, d.Text, d.URL, d.Data})
}

// safeLink refuses links that would run something in the page that shows them.
func safeLink(text string) bool {
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > 2048 || strings.ContainsRune(text, '\\'):
		return false
	case u.Scheme == "":
		return u.Host == "" && (text == "" || text[0] == '/')
	}
	return (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// put needs no memory of its own: the inbox knows the id.
func (n *Notify) put(ctx context.Context, j *worker.Job, users []string, what note) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	for _, user := range users {
		switch err := n.cfg.Inbox.Put(ctx, user, j.Key(), body); forebay.CodeOf(err) {
		case "":
		case forebay.CodeInvalid, forebay.CodeTooLarge:
			return task.BadData("user", "the inbox of %q: %w", clean(user), err)
		default:
			return fmt.Errorf("the inbox of %q: %w", clean(user), err)
		}
	}
	return nil
}

// sendAlert tells everybody who is to know. What fails is tried again, and only that.
func (n *Notify) sendAlert(ctx context.Context, j *worker.Job, a broker.Alert) (any, error) {
	title, times := fmt.Sprintf("%s: %s in %s", a.Reason, a.Name, a.Queue), fmt.Sprintf(" (%d times)", a.Count)
	ofQueue := a.Reason == broker.AlertGrowth || a.Reason == broker.AlertDropped // as a whole, of no job
	if ofQueue {
		title, times = fmt.Sprintf("%s: dead letters of %s", a.Reason, a.Queue), fmt.Sprintf(" (%d)", a.Count)
	}
	if a.Reason == broker.AlertRule || a.Reason == broker.AlertResolved {
		ofQueue, title, times = true, fmt.Sprintf("%s: %s", a.Reason, a.Name), ""
	}
	if title = clean(title); a.Count > 1 {
		title += times
	}
	if a.ID == "" && !ofQueue || a.Queue == "" && times != "" {
		return nil, task.BadData("id", "an alert needs a queue, and the id of a job; of growth and dropped only the queue, of rules neither")
	}
	var failed []error
	try := func(what string, err error) {
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", what, err))
		}
	}
	if n.cfg.Inbox != nil {
		users := n.cfg.Alerts.Users
		if a.Owner != "" {
			users = append([]string{a.Owner}, users...)
		}
		try("inbox", n.put(ctx, j, users, note{Kind: KindAlert, Title: strings.ToValidUTF8(title[:min(len(title), maxTitle)], ""), Text: clean(a.Error), Data: jsontext.Value(j.Payload)}))
	}
	if to := n.cfg.Alerts.Mail; len(to) > 0 {
		try("mail", n.mailAlert(ctx, j, to, title, a))
	}
	if address := n.cfg.Alerts.Webhook; address != "" {
		_, err := once(ctx, j, "webhook", func(ctx context.Context) ([]byte, error) {
			return n.cfg.Alerts.Poster.Post(ctx, address, j.Key(), j.Payload)
		})
		try("webhook", err)
	}
	return nil, together(failed)
}

func (n *Notify) mailAlert(ctx context.Context, j *worker.Job, to []string, title string, a broker.Alert) error {
	job := ""
	if a.ID != "" {
		job = fmt.Sprintf("Job:      %s\nName:     %s\n", a.ID, a.Name)
	}
	text := fmt.Sprintf("%sQueue:    %s\nReason:   %s\nAttempts: %d\nCount:    %d\nAt:       %s\nError:    %s (%s)\n",
		job, a.Queue, a.Reason, a.Attempts, a.Count, a.At.UTC().Format("2006-01-02 15:04:05 MST"), a.Error, a.Code)
	_, err := n.sendMail(ctx, j, mailData{To: to, Subject: "[forebay] " + title, Text: text})
	return err
}

// together is permanent only where every failure is: then no repetition helps.
func together(failed []error) error {
	err := errors.Join(failed...)
	if err == nil {
		return nil
	}
	lasting := 0
	for _, f := range failed {
		if forebay.IsPermanent(f) {
			lasting++
		}
	}
	cause := forebay.CauseOf(failed[0], time.Time{})
	err = forebay.Because(forebay.Cause{Code: cause.Code}, errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")))
	if lasting == len(failed) {
		return forebay.Permanent(err)
	}
	return err
}
