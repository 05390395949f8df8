//go:build e2e && linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// prometheus is a private one that watches a server, with the rules of deploy/.
type prometheus struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	rules, err := filepath.Abs("../../deploy/prometheus/forebay.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir, address := t.TempDir(), freeAddress(t)
	config := fmt.Sprintf(`
global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
  - job_name: forebay
    static_configs: [{targets: [%q]}]
`, rules, strings.TrimPrefix(target, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (bash test/setup.sh installs it)", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus wrote:\n%s", tail(log.Name()))
		}
	})
	return &prometheus{t, "http://" + address}
}

// ask gives how many series a query has now, and what is wrong with it.
func (p *prometheus) ask(query string) (series int, trouble string) {
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Second)
	defer cancel()
	status, body, err := get(ctx, p.url+"/api/v1/query?query="+url.QueryEscape(query))
	var v struct {
		Error string
		Data  struct{ Result []any }
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), &v)
	}
	if err != nil || status != http.StatusOK {
		return 0, fmt.Sprintf("%d %s %v", status, v.Error, err)
	}
	return len(v.Data.Result), ""
}

// unlikely are series that only something wrong, or a queue on SQS, brings into being.
var unlikely = regexp.MustCompile("forebay_sqs_|lease_lost|settle_failures")

// Every query of the dashboard has an answer on a live Prometheus, and every rule is
// evaluated without an error.
func TestDashboardAndRulesOnALivePrometheus(t *testing.T) {
	s := newServer(t)
	s.args = []string{"--set", "handlers.shout.command=[\"sh\",\"-c\",\"cat >/dev/null; echo\"]", "--set", "handlers.shout.queue=shouts"}
	s.start()
	p := startPrometheus(t, s.url)
	work := func() {
		for path, body := range map[string]string{
			"/ingest/batch": `[{"eventId":"` + fmt.Sprint(time.Now().UnixNano()) + `","eventType":"x","payload":{}},{"eventType":""}]`,
			"/api/jobs":     `{"queue":"shouts","name":"` + []string{"shout", "nobody"}[time.Now().UnixNano()%2] + `","data":{}}`,
		} {
			if status, answer, err := post(t.Context(), s.url+path, []byte(body), http.Header{"Content-Type": {"application/json"}}); err != nil || status >= 300 {
				t.Fatalf("%s: %d %s %v", path, status, answer, err)
			}
		}
	}
	for _, query := range boardQueries(t) {
		if unlikely.MatchString(query) {
			if _, trouble := p.ask(query); trouble != "" {
				t.Errorf("%s: %s", query, trouble)
			}
			continue
		}
		trouble := ""
		if !eventually(t, 20*time.Second, func() bool {
			work()
			var n int
			n, trouble = p.ask(query)
			return n > 0
		}) {
			t.Errorf("%s: no series; %s", query, trouble)
		}
	}
	_, body, err := get(t.Context(), p.url+"/api/v1/rules")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(body, `"health":"ok"`); n != 18 || strings.Contains(body, `"health":"err"`) {
		t.Errorf("%d rules are evaluated well: %s", n, body)
	}
}

func boardQueries(t *testing.T) (all []string) {
	t.Helper()
	b, err := os.ReadFile("../../deploy/grafana/forebay.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			all = append(all, strings.NewReplacer("$queue", ".*", "$__rate_interval", "5s").Replace(target.Expr))
		}
	}
	if len(all) < 30 {
		t.Fatalf("%d queries", len(all))
	}
	return all
}
