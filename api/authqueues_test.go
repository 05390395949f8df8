package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/audit"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/catalog"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/schedule"
)

// asked is a request for something of the queue secretq.
type asked struct {
	id   string // of the operation in the OpenAPI document
	path string
	body string
	want string // of a key that holds for another queue
}

// What is wanted of an answer to a key that holds for another queue.
const (
	refused = "refused" // with 401, 403 or 404
	empty   = "empty"   // a list of nothing
	each    = "each"    // an error for the one item
	open    = "open"    // it touches no queue
)

// everyRoute asks each route of the document for what is of secretq, whose jobs, payloads and
// names have "secret" in them. What changes things stands behind what only looks at them.
func everyRoute(receipt, action string, seq, bad int64) []asked {
	job, letter := "/api/jobs/secret-1", fmt.Sprintf("/api/dead/%d", seq)
	file := "flow: secretflow\nsteps:\n  a: {use: secretkind, queue: secretq}\n"
	source, _ := json.Marshal(map[string]string{"source": file})
	preview, _ := json.Marshal(map[string]string{"source": file, "step": "a"})
	other := `{"queue":"secretq","name":"secretkind","data":{"a":"secret"}}`
	looks := []asked{
		{"list-queues", "/api/queues", "", empty}, {"get-queue", "/api/queues/secretq", "", refused},
		{"get-limits", "/api/queues/secretq/limits", "", refused}, {"peek-queue", "/api/queues/secretq/messages", "", refused}, {"queue-durations", "/api/queues/secretq/durations", "", refused},
		{"scaling", "/api/scaling", "", empty}, {"scaling-of-queue", "/api/scaling/secretq", "", refused},
		{"list-workers", "/api/workers", "", empty}, {"health", "/api/health", "", open}, {"overview", "/api/overview", "", open},
		{"list-alerts", "/api/alerts", "", empty},
		{"list-jobs", "/api/jobs", "", empty}, {"list-jobs", "/api/jobs?q=queue:secretq", "", empty}, {"get-job", job, "", refused},
		{"get-progress", job + "/progress", "", refused}, {"get-result", "/api/jobs/secret-done/result", "", refused},
		{"get-history", job + "/history", "", refused}, {"get-logs", job + "/logs", "", refused},
		{"stream-job", "/api/jobs/secret-done/stream", "", refused}, {"stream-job-events", "/api/jobs/secret-done/events", "", refused},
		{"stream-events", "/api/stream?queue=secretq", "", refused},
		{"list-dead", "/api/dead", "", empty}, {"list-dead", "/api/dead?queue=secretq", "", empty}, {"get-dead", letter, "", refused},
		{"list-dead-groups", "/api/dead/groups", "", empty}, {"list-dead-groups", "/api/dead/groups?queue=secretq", "", empty},
		{"list-dead-actions", "/api/dead/actions", "", empty}, {"get-dead-action", "/api/dead/actions/" + action, "", refused},
		{"list-history", "/api/history", "", empty}, {"list-history", "/api/history?queue=secretq", "", refused},
		{"list-history", "/api/history?of=messages&queue=secretq", "", refused},
		{"list-bad", "/api/bad", "", refused}, {"get-bad", fmt.Sprintf("/api/bad/%d", bad), "", refused}, {"find-event", "/api/events/secret-1", "", refused},
		{"list-schedules", "/api/schedules", "", empty}, {"get-schedule", "/api/schedules/secrets", "", refused},
		{"preview-schedule", "/api/schedules/secrets/preview", "", refused}, {"preview-definition", "/api/schedules/preview", `{"every":"1h"}`, open},
		{"list-flows", "/api/flows", "", empty}, {"get-flow", "/api/flows/secretflow", "", refused},
		{"list-flow-versions", "/api/flows/secretflow/versions", "", refused}, {"diff-flow", "/api/flows/secretflow/diff", "", refused},
		{"diff-flow-file", "/api/flows/secretflow/diff", file, refused}, {"list-flow-runs", "/api/flows/secretflow/runs", "", refused},
		{"flow-schema", "/api/flow-schema", "", open}, {"format-flow", "/api/flows/format", `{"source":"flow: f"}`, open},
		{"edit-flow", "/api/flows/edit", `{"source":"flow: f","edits":[{"path":"description","value":"x"}]}`, open},
		{"export-flow", "/api/flows/export", `{"source":"flow: f"}`, open}, {"import-flow", "/api/flows/import", `{"source":"document: {}"}`, open},
		{"get-encryption", "/api/encryption", "", refused}, {"rotate-encryption", "/api/encryption/rotate", "{}", refused},
		{"validate-flow", "/api/flows/validate", file, refused}, {"dry-run-flow", "/api/flows/dry-run", string(source), refused},
		{"list-runs", "/api/runs", "", empty}, {"get-run", "/api/runs/secretrun", "", refused}, {"stream-run", "/api/runs/secretrun/stream", "", refused},
		{"get-session", "/api/session", "", open}, {"list-keys", "/api/keys", "", refused}, {"list-access-keys", "/api/sqs/keys", "", refused},
		{"list-audit", "/api/audit", "", refused}, {"list-views", "/api/views", "", empty}, {"add-ticket", "/api/stream-tickets", `{"path":"/api/stream"}`, open},
		{"list-handlers", "/api/handlers", "", empty}, {"flow-heat", "/api/flows/secretflow/heat", "", refused},
		{"preview-flow", "/api/flows/preview", string(preview), refused},
	}
	return append(looks, everyChange(receipt, action, letter, job, file, other)...)
}

// everyChange asks those that change something.
func everyChange(receipt, action, letter, job, file, other string) []asked {
	return []asked{
		{"put-handler", "/api/queues/secretq/handlers/secretkind", `{"title":"x"}`, refused}, {"delete-handler", "/api/queues/secretq/handlers/secretkind", "", refused},
		{"restore-flow", "/api/flows/secretflow/versions/1/restore", `{"reason":"x"}`, refused}, {"release-flow", "/api/flows/secretflow/versions/1/release", `{"comment":"x"}`, refused},
		{"mute-alert", "/api/alerts/dead/mute", `{"for":"1h"}`, refused}, {"pause-queue", "/api/queues/secretq/pause", "", refused},
		{"resume-queue", "/api/queues/secretq/resume", "", refused}, {"set-limits", "/api/queues/secretq/limits", `{"active":9}`, refused},
		{"set-concurrency", "/api/queues/secretq/concurrency", `{"auto":true}`, refused},
		{"lease-jobs", "/api/queues/secretq/lease", `{"max":1}`, refused}, {"extend-leases", "/api/leases/extend", `{"receipts":["` + receipt + `"]}`, each},
		{"tell-progress", "/api/leases/progress", `{"items":[{"receipt":"` + receipt + `"}]}`, each},
		{"settle-leases", "/api/leases/settle", `{"items":[{"receipt":"` + receipt + `","verdict":"ack"}]}`, each},
		{"add-job", "/api/jobs", other, refused}, {"add-jobs", "/api/jobs/bulk", `{"items":[` + other + `]}`, each},
		{"act-on-jobs", "/api/jobs/actions", `{"action":"cancel","q":"queue:secretq"}`, refused}, {"act-on-jobs", "/api/jobs/actions", `{"action":"cancel","all":true}`, refused},
		{"promote-job", "/api/jobs/secret-late/promote", "", refused}, {"change-job", job, `{"priority":1}`, refused}, {"cancel-job", job + "/cancel", "{}", refused},
		{"retry-job", "/api/jobs/secret-done/retry", "", refused}, {"remove-job", "/api/jobs/secret-done", "", refused},
		{"edit-dead", letter + "/replay", `{"data":{}}`, refused}, {"replay-dead", "/api/dead/replay", `{"all":true,"dryRun":true}`, open},
		{"replay-dead", "/api/dead/replay", `{"all":true,"queue":"secretq"}`, refused}, {"replay-dead", "/api/dead/replay", `{"all":true,"into":"secretq"}`, refused},
		{"discard-dead", "/api/dead/discard", `{"all":true,"queue":"secretq","reason":"x"}`, refused},
		{"act-on-dead", "/api/dead/actions", `{"action":"replay","queue":"secretq"}`, refused}, {"pause-dead-action", "/api/dead/actions/" + action + "/pause", "", refused},
		{"cancel-dead-action", "/api/dead/actions/" + action + "/cancel", "", refused}, {"resume-dead-action", "/api/dead/actions/" + action + "/resume", "", refused},
		{"redrive-dead", "/api/dead/elsewhere/secretq/redrive", "{}", refused}, {"cancel-redrive", "/api/dead/elsewhere/secretq/redrive/t", "", refused},
		{"replay-history", "/api/history/replay", `{"queue":"secretq","into":"queue"}`, refused}, {"replay-bad", "/api/bad/replay", `{"all":true}`, refused},
		{"discard-bad", "/api/bad/discard", `{"all":true,"reason":"x"}`, refused},
		{"put-schedule", "/api/schedules/secrets", `{"every":"1h","job":{"queue":"mine","name":"n"}}`, refused},
		{"put-schedule", "/api/schedules/new", `{"every":"1h","job":{"queue":"secretq","name":"n"}}`, refused},
		{"pause-schedule", "/api/schedules/secrets/pause", "", refused}, {"resume-schedule", "/api/schedules/secrets/resume", "", refused},
		{"run-schedule", "/api/schedules/secrets/run", "", refused}, {"delete-schedule", "/api/schedules/secrets", "", refused},
		{"put-flow", "/api/flows/secretflow", file, refused}, {"put-flow", "/api/flows/secretflow", "flow: secretflow\nsteps:\n  a: {use: x, queue: mine}\n", refused},
		{"start-run", "/api/flows/secretflow/runs", "{}", refused}, {"send-flow-event", "/api/flow-events", `{"type":"x"}`, refused},
		{"pause-run", "/api/runs/secretrun/pause", "{}", refused}, {"resume-run", "/api/runs/secretrun/resume", "{}", refused},
		{"retry-run", "/api/runs/secretrun/retry", "{}", refused}, {"skip-run", "/api/runs/secretrun/skip", `{"step":"a"}`, refused},
		{"discard-run", "/api/runs/secretrun/discard", `{"step":"a"}`, refused}, {"approve-run", "/api/runs/secretrun/approve", `{"step":"a"}`, refused},
		{"cancel-run", "/api/runs/secretrun/cancel", "{}", refused},
		{"add-key", "/api/keys", `{"name":"x"}`, refused}, {"rotate-key", "/api/keys/k/rotate", `{}`, refused}, {"revoke-key", "/api/keys/k", "", refused},
		{"add-access-key", "/api/sqs/keys", `{"name":"x"}`, refused}, {"revoke-access-key", "/api/sqs/keys/x", "", refused},
		{"purge-queue", "/api/queues/secretq/purge", `{"confirm":"secretq"}`, refused},
		{"save-view", "/api/views", `{"screen":"jobs","name":"n","query":"","shared":true}`, refused}, {"delete-view", "/api/views/shared-x", "", refused}, {"sign-in", "/api/session", "KEY", open}, {"sign-out", "/api/session", "", open},
	}
}

// A key that holds for one queue gets nothing of another, by any route. A route that is not
// in the table fails the test: whoever adds one says here what such a key gets.
func TestAKeyOfAnotherQueueGetsNothing(t *testing.T) {
	t.Parallel()
	s, receipt, action, bad := startSecrets(t)
	seq := must[api.DeadList](t)(s.with(t, token).Dead(t.Context(), api.DeadFilter{}, 0, 10)).Items[0].Seq
	_, theirs := s.keyOf(t, "theirs", "mine")
	table := everyRoute(receipt, action, seq, bad)
	methods := s.operations(t)
	for _, one := range table {
		method := methods[one.id]
		if method == "" {
			t.Errorf("%s is no operation of the document", one.id)
			continue
		}
		delete(methods, one.id+" ") // it has an entry
		got := s.do(t, method, one.path, strings.ReplaceAll(one.body, "KEY", `{"key":"`+theirs+`"}`), map[string]string{"Authorization": "Bearer " + theirs})
		if problem := one.judge(got); problem != "" {
			t.Errorf("%s %s %s: %s: %d %.300s", method, one.path, one.body, problem, got.status, got.body)
		}
	}
	for id := range methods {
		if id, missing := strings.CutSuffix(id, " "); missing {
			t.Errorf("%s has no entry in the table of this test", id)
		}
	}
	// The same requests by one who holds for all queues do get something, or the above shows
	// nothing.
	for _, one := range table {
		if strings.HasPrefix(one.id, "stream-") {
			if status := s.begins(t, one.path); status != http.StatusOK {
				t.Errorf("%s answers %d to those who hold for all", one.path, status)
			}
			continue
		}
		got := s.do(t, methods[one.id], one.path, one.body, map[string]string{"Authorization": "Bearer " + token})
		if one.want == empty && !strings.Contains(got.body, "secret") && one.id != "list-workers" && one.id != "list-alerts" ||
			one.want == refused && (got.status == 401 || got.status == 403) {
			t.Errorf("%s %s answers %d to those who hold for all: %.300s", one.id, one.path, got.status, got.body)
		}
	}
}

// begins is the status with which a stream begins for those who hold for all.
func (s *server) begins(t *testing.T, path string) int {
	t.Helper()
	req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil))
	req.Header.Set("Authorization", "Bearer "+token)
	resp := must[*http.Response](t)(http.DefaultClient.Do(req))
	resp.Body.Close()
	return resp.StatusCode
}

// judge says what is wrong with an answer.
func (one *asked) judge(got response) string {
	var list struct {
		Items  []json.RawMessage `json:"items"`
		Failed int               `json:"failed"`
	}
	_ = json.Unmarshal([]byte(got.body), &list) // what is no list has no items
	switch {
	case got.status < 300 && one.want != each && strings.Contains(got.body, "secret"):
		return "it tells of another queue"
	case strings.Contains(got.body, "hush"):
		return "it tells what was sent to another queue"
	case one.want == refused && got.status != 401 && got.status != 403 && got.status != 404:
		return "it is not refused"
	case one.want == open && got.status >= 300:
		return "it is refused"
	case one.want == empty && (got.status != 200 || len(list.Items) > 0 && one.id != "list-alerts"):
		return "it is no empty list"
	case one.want == each && (got.status != 200 || list.Failed == 0 && !strings.Contains(got.body, `"code":"unauthorized"`)):
		return "the item is not refused"
	}
	return ""
}

// operations are the methods of all operations, by id; with a space behind it, until there is
// an entry for it.
func (s *server) operations(t *testing.T) map[string]string {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal([]byte(s.do(t, "GET", "/openapi.json", "", nil).body), &doc); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, operations := range doc.Paths {
		for method, one := range operations {
			all[one.OperationID], all[one.OperationID+" "] = strings.ToUpper(method), "?"
		}
	}
	return all
}

// keyOf adds the key of an operator.
func (s *server) keyOf(t *testing.T, name string, queues ...string) (keyring.Key, string) {
	t.Helper()
	k, secret, err := s.ring.Add(keyring.Spec{Name: name, Scopes: []keyring.Scope{keyring.ScopeOperate}, Queues: queues})
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

// startSecrets is a server with everything there can be of a queue.
func startSecrets(t *testing.T) (s *server, receipt, action string, bad int64) {
	t.Helper()
	ctx := t.Context()
	s = start(t, func(c *api.Config) {
		c.Schedules = must[*schedule.Scheduler](t)(schedule.New(schedule.Config{Broker: c.Broker}))
		c.Flows = must[*runner.Runner](t)(runner.New(c.Broker, runner.Config{Alone: true}))
		c.Catalog = must[*catalog.Catalog](t)(catalog.New(catalog.Config{Documents: c.Broker}))
		c.Workers = []api.Worker{{Queue: "secretq"}}
		log := must[*audit.Log](t)(audit.Open(t.TempDir()+"/audit", audit.Config{}))
		t.Cleanup(func() { log.Close() })
		c.Audit = log
	})
	data := json.RawMessage(`{"a":"hush"}`)
	must[api.Handler](t)(s.PutHandler(ctx, "secretq", "secretkind", api.HandlerAbout{Title: "secret"}))
	s.die(t, "secretq", "secretcode", 2)
	for id, delay := range map[string]time.Duration{"secret-done": 0, "secret-1": time.Hour, "secret-late": time.Hour} {
		must[api.AddedJob](t)(s.AddJob(ctx, api.NewJob{ID: id, Queue: "secretq", Name: "secretkind", Data: data, Delay: api.Duration(delay)}, ""))
	}
	ds := must[[]forebay.Delivery](t)(s.broker.Receive(ctx, engine.Receive{Queue: "secretq", Max: 1}))
	must[[]error](t)(s.broker.Settle(ctx, []forebay.Settlement{{Receipt: ds[0].Receipt, Queue: "secretq", Verdict: forebay.Ack, Result: []byte(`"hush"`)}}))
	must[api.AddedJob](t)(s.AddJob(ctx, api.NewJob{ID: "secret-leased", Queue: "secretq", Name: "secretkind", Data: data}, ""))
	leased := must[[]api.Lease](t)(s.LeaseJobs(ctx, "secretq", api.LeaseRequest{Max: 1}))
	put := api.PutSchedule{ScheduleDefinition: api.ScheduleDefinition{Every: api.Duration(time.Hour), Job: api.ScheduledJob{Queue: "secretq", Name: "secretkind"}}}
	must[api.Schedule](t)(s.PutSchedule(ctx, "secrets", put))
	for _, extra := range []string{"", "  b: {use: secretkind, queue: secretq}\n"} {
		must[api.PutFlow](t)(s.PutFlow(ctx, "secretflow", []byte("flow: secretflow\nsteps:\n  a: {use: secretkind, queue: secretq}\n"+extra)))
	}
	must[api.StartedRun](t)(s.StartRun(ctx, "secretflow", api.StartRun{ID: "secretrun"}, ""))
	work := must[api.DeadWork](t)(s.ActOnDead(ctx, api.DeadAction{Action: "discard", Reason: "secret", DeadFilter: api.DeadFilter{Queue: "secretq", Code: "none"}}))
	if err := s.bad.Put(ctx, []badrow.Row{{EventID: "e", Reason: "secret", Bytes: []byte("hush")}}); err != nil {
		t.Fatal(err)
	}
	s.do(t, http.MethodPost, "/api/views", `{"screen":"jobs","name":"secret","query":"q=queue:secretq","shared":true}`, map[string]string{"Authorization": "Bearer " + token})
	rows := must[[]badrow.Row](t)(s.bad.List(ctx, badrow.Query{Limit: 1}))
	return s, leased[0].Receipt, work.ID, rows[0].Seq
}

// What a key holds for, it sees and changes as any other: lists are of its queues, a page
// after the other; a filter means its queues; sessions and tickets open no more than it does.
func TestAKeyOfSomeQueuesWorksThere(t *testing.T) {
	t.Parallel()
	s, ctx := start(t, nil), t.Context()
	for _, queue := range []string{"img-a", "img-b", "mail", "other"} {
		s.die(t, queue, "code", 2)
		for i := range 3 {
			must[api.AddedJob](t)(s.AddJob(ctx, api.NewJob{ID: fmt.Sprintf("%s-%d", queue, i), Queue: queue, Name: "n"}, ""))
		}
	}
	k, secret := s.keyOf(t, "some", "img-*", "mail")
	c := s.with(t, secret)
	var ids, letters []string
	for after := ""; ; {
		page := must[api.JobList](t)(c.Jobs(ctx, "", after, 2))
		for _, j := range page.Items {
			ids = append(ids, j.JobID[:len(j.JobID)-2])
		}
		if after = page.Next; after == "" {
			break
		}
	}
	equal(t, "jobs", strings.Join(ids, " "), "img-a img-a img-a img-b img-b img-b mail mail mail")
	for before := int64(0); ; {
		page := must[api.DeadList](t)(c.Dead(ctx, api.DeadFilter{}, before, 2))
		for _, d := range page.Items {
			letters = append(letters, d.Message.Queue)
		}
		if before = page.Next; before == 0 {
			break
		}
	}
	equal(t, "dead letters", strings.Join(letters, " "), "mail mail img-b img-b img-a img-a")
	out := must[api.Outcome](t)(c.ReplayDead(ctx, api.DeadReplay{Selection: api.Selection{All: true}}))
	equal(t, "replayed", out.Done, 6)
	_, err := c.ActOnJobs(ctx, api.BulkAction{Action: "cancel", All: true})
	wantCode(t, err, forebay.CodeUnauthorized) // it must say which of its queues
	started := must[api.BulkStarted](t)(c.ActOnJobs(ctx, api.BulkAction{Action: "cancel", Q: "queue:mail"}))
	if j := must[api.Job](t)(c.Job(ctx, started.JobID)); j.JobID != started.JobID {
		t.Errorf("the job that acts for it is %+v", j)
	}
	_, err = c.AddJob(ctx, api.NewJob{ID: "other-0", Queue: "mail", Name: "n"}, "")
	wantCode(t, err, forebay.CodeConflict) // of another queue, whose state is not told
	_, err = c.AddJob(ctx, api.NewJob{Queue: "mail", Name: "n", Headers: map[string]string{"flow-run": "r", "flow-step": "s"}}, "")
	wantCode(t, err, forebay.CodeUnauthorized)
	_, all := s.keyOf(t, "all by name", "*")
	_, err = s.with(t, all).AddJob(ctx, api.NewJob{Queue: api.BulkQueue, Name: api.BulkKind}, "")
	wantCode(t, err, forebay.CodeUnauthorized) // there a job may act on any queue
	s.sessionAndTicket(t, k, secret)
}

func (s *server) sessionAndTicket(t *testing.T, k keyring.Key, secret string) {
	t.Helper()
	r := s.do(t, "POST", "/api/session", `{"key":"`+secret+`"}`, map[string]string{"Sec-Fetch-Site": same})
	cookie := map[string]string{"Cookie": strings.Split(r.header.Get("Set-Cookie"), ";")[0], "Sec-Fetch-Site": same}
	get := func(path string) response { return s.do(t, "GET", path, "", cookie) }
	if r := get("/api/session"); !strings.Contains(r.body, `"queues":["img-*","mail"]`) {
		t.Errorf("the session is %s", r.body)
	}
	if own, other := get("/api/jobs/mail-0").status, get("/api/jobs/other-0").status; own != 200 || other != 404 {
		t.Errorf("by a cookie, its job answers %d and another's %d", own, other)
	}
	c := s.with(t, secret)
	for path, want := range map[string]int{"/api/jobs/mail-0/stream": 200, "/api/jobs/other-0/stream": 404} {
		if status, _ := s.open(t, must[api.Ticket](t)(c.NewTicket(t.Context(), path)).URL); status != want {
			t.Errorf("by a ticket, %s answers %d", path, status)
		}
	}
	fresh := must[api.AddedKey](t)(s.with(t, token).RotateKey(t.Context(), k.ID, time.Hour))
	for _, secret := range []string{secret, fresh.Secret} {
		must[[]api.Queue](t)(s.with(t, secret).Queues(t.Context()))
	}
	again := must[api.AddedKey](t)(s.with(t, token).RotateKey(t.Context(), k.ID, 0))
	for _, gone := range []string{secret, fresh.Secret} {
		_, err := s.with(t, gone).Queues(t.Context())
		wantCode(t, err, forebay.CodeUnauthorized)
	}
	if r := get("/api/queues"); r.status != http.StatusUnauthorized {
		t.Errorf("a session by a secret that has ended answers %d", r.status)
	}
	must[api.Key](t)(s.with(t, token).RevokeKey(t.Context(), k.ID))
	_, err := s.with(t, again.Secret).Queues(t.Context())
	wantCode(t, err, forebay.CodeUnauthorized)
}
