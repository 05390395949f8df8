//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/internal/pgtest"
)

// flowRun is what the API shows of a run.
type flowRun struct {
	RunID, State string
	Output       json.RawMessage
	Failure      *struct{ Step, Code, Message string }
	Waiting      []struct{ Step, Job, Text string }
	Steps        []struct {
		ID, State string
		Output    json.RawMessage
		Error     *struct{ Code, Message string }
		Job       *job
	}
}

func (r *flowRun) states() string {
	all := []string{r.State}
	for _, s := range r.Steps {
		all = append(all, s.ID+":"+s.State)
	}
	return strings.Join(all, " ")
}

func (s *server) run(id string) (r flowRun) {
	s.t.Helper()
	s.must(http.StatusOK, http.MethodGet, "/api/runs/"+id, nil, &r)
	return r
}

// awaitRun waits until the states of a run and its steps are these.
func (s *server) awaitRun(id, want string) (r flowRun) {
	s.t.Helper()
	if !eventually(s.t, 20*time.Second, func() bool { r = s.run(id); return r.states() == want }) {
		s.t.Fatalf("the run %s is %s, want %s; it waits for %v, failed with %v", id, r.states(), want, r.Waiting, r.Failure)
	}
	return r
}

// jobTarget is a server that jobs of some kinds are pushed to.
type jobTarget struct {
	url   string
	mu    sync.Mutex
	life  int              // of the server that calls
	lives map[string][]int // by the job's id, of each call
}

// next begins another life.
func (p *jobTarget) next() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life++
}

func (p *jobTarget) count(job string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lives[job])
}

func newJobTarget(t *testing.T, do func(kind string, data json.RawMessage) (any, error)) *jobTarget {
	p := &jobTarget{lives: map[string][]int{}}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var j struct {
			JobID, Name string
			Data        json.RawMessage
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &j) != nil {
			return
		}
		p.mu.Lock()
		p.lives[j.JobID] = append(p.lives[j.JobID], p.life)
		p.mu.Unlock()
		result, err := do(j.Name, j.Data)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(result)
	}))
	t.Cleanup(h.Close)
	p.url = h.URL
	return p
}

// signUp is what the example of a registration needs around it: a database with or
// without its table, and a mail server that takes mail or refuses it.
type signUp struct {
	database, mail string
	t              *testing.T
}

func (u *signUp) do(kind string, data json.RawMessage) (any, error) {
	switch kind {
	case "create-user-record":
		var user struct{ Email, Name string }
		if err := json.Unmarshal(data, &user); err != nil {
			return nil, err
		}
		db, err := pgx.Connect(u.t.Context(), u.database)
		if err != nil {
			return nil, err
		}
		defer db.Close(u.t.Context())
		var id string
		err = db.QueryRow(u.t.Context(), `INSERT INTO users (email, name) VALUES ($1, $2) RETURNING 'user_' || id`, user.Email, user.Name).Scan(&id)
		return map[string]string{"userId": id}, err
	case "send-welcome-email":
		return nil, smtp.SendMail(u.mail, nil, "shop@example.com", []string{"ada@example.com"}, []byte("Subject: Welcome\r\n\r\nHello\r\n"))
	}
	return map[string]bool{"ok": true}, nil
}

// refusingMail is a mail server that is there, and refuses.
func refusingMail(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "554 no mail today\r\n")
			c.Close()
		}
	}()
	return l.Addr().String()
}

// The registration of the examples. With a mail server that refuses it completes, and
// the skip is in its history. With a database that refuses its step is tried again,
// dead, and replayed once the table is there: the run goes on from it.
func TestRegistration(t *testing.T) {
	u := &signUp{database: pgtest.Database(t), mail: refusingMail(t), t: t}
	target := newJobTarget(t, u.do)
	dir := t.TempDir()
	src, err := os.ReadFile("../../examples/flows/registration.yaml")
	for path, retry := range map[string]string{"steps.create.retry": `{"attempts":2,"base":"50ms","jitter":0}`, "steps.welcome.retry": `{"attempts":3,"base":"50ms","jitter":0}`} {
		if err == nil {
			src, err = flow.Edit(src, path, json.RawMessage(retry))
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "registration.yaml"), src, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	settings := []string{"flows.dir=" + dir}
	for kind, queue := range map[string]string{
		"validate-user-data": "default", "create-user-record": "default", "delete-user-record": "default",
		"send-welcome-email": "notifications", "initialize-workspace": "workspace-setup",
	} {
		settings = append(settings, "handlers."+kind+".queue="+queue, "handlers."+kind+".url="+target.url)
	}
	s := jobServer(t, settings...)
	s.mustForebay("flow", "run", "registration", `{"email":"ada@example.com","name":"Ada"}`, "--id", "r1")

	waits := s.awaitRun("r1", "running validate:completed create:dead welcome:blocked workspace:blocked")
	if len(waits.Waiting) != 3 || waits.Waiting[0].Step != "create" || !strings.Contains(waits.Waiting[0].Text, "replay or discard it") || waits.Steps[1].Job.Attempts != 2 {
		t.Errorf("it waits for %+v after %+v", waits.Waiting, waits.Steps[1].Job)
	}
	connect(t, u.database).exec(`CREATE TABLE users (id bigserial PRIMARY KEY, email text UNIQUE, name text)`)
	dead := s.dead()
	if len(dead) != 1 || dead[0].Message.ID != "r1/create" {
		t.Fatalf("dead letters: %+v", dead)
	}
	s.mustForebay("dead", "replay", fmt.Sprint(dead[0].Seq))
	end := s.awaitRun("r1", "completed validate:completed create:completed welcome:skipped workspace:completed")
	if got, want := string(end.Output), `{"userId":"user_1","welcomed":false,"workspace":{"ok":true}}`; got != want {
		t.Errorf("the run gave %s, want %s", got, want)
	}
	if e := end.Steps[2].Error; e == nil || !strings.Contains(e.Message, "no mail today") || target.count("r1/welcome") != 3 || target.count("r1/create") != 3 {
		t.Errorf("the mail failed with %+v; calls: %v", e, target.lives)
	}
	skipped := false
	for _, h := range s.history("r1/welcome") {
		skipped = skipped || h.Type == "cancelled"
	}
	if !skipped || len(s.dead()) != 0 {
		t.Errorf("the history of the mail is %+v, the dead letters %+v", s.history("r1/welcome"), s.dead())
	}
	if out := s.mustForebay("flow", "show", "r1"); !strings.Contains(out, "no mail today") {
		t.Errorf("flow show says %s", out)
	}
}

// The examples run as their README says, by the command.
func TestFlowExamples(t *testing.T) {
	s := newServer(t)
	s.wrap = []string{"sh", "-c", `p=$(realpath "$0"); cd ../.. && exec "$p" "$@"`}
	s.args = []string{"--config", "examples/flows/server/forebay.yaml"}
	s.start()
	example := func(name, input string, want ...string) {
		t.Helper()
		out := s.mustForebay("flow", "run", "../../examples/flows/"+name, input, "--watch")
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s does not tell %q:\n%s", name, w, out)
			}
		}
	}
	example("registration.yaml", `{"email":"ada@example.com","name":"Ada"}`, "workspace  completed", `"welcomed":true`)
	up := s.upload(jpegOf(t, photo(1600, 1200)), "width", "1200")
	source := strings.TrimPrefix(up.Data.OriginalURL, "/files/")
	example("photo.yaml", fmt.Sprintf(`{"source":%q,"user":"ada","watermark":"© Ada"}`, source), `"size":"1200x900"`, "tell  completed", "marked  completed")
	example("gallery.yaml", fmt.Sprintf(`{"gallery":"summer","sources":[%q,"originals/none.jpg",%[1]q]}`, source), `"pictures":2`, `"broken":1`)
	var inbox struct {
		Messages []struct{ Message struct{ Title, URL string } }
	}
	s.must(http.StatusOK, http.MethodGet, "/api/inbox/ada", nil, &inbox)
	if len(inbox.Messages) != 1 || !strings.HasPrefix(inbox.Messages[0].Message.URL, "/files/") {
		t.Errorf("the inbox has %+v", inbox)
	}
}
