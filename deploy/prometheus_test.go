package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The rules are right in the eyes of Prometheus's own tool, and fire when they should.
func TestPrometheusRules(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "prometheus/forebay.rules.yml"},
		{"test", "rules", "prometheus/forebay.rules.test.yml"},
	} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v (bash test/setup.sh installs it)\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// Every series that rules and dashboard ask for is one that operators can look up.
func TestSeriesOfRulesAndDashboardAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\bforebay_[a-z0-9_]+`)
	for _, file := range []string{"prometheus/forebay.rules.yml", "grafana/forebay.json"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := name.FindAllString(string(b), -1)
		slices.Sort(all)
		for _, one := range slices.Compact(all) {
			one = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(one, "_bucket"), "_sum"), "_count")
			if !strings.Contains(string(doc), "`"+one+"`") && !strings.Contains(string(doc), "`"+one+"{") {
				t.Errorf("%s asks for %s, of which docs/operate.md says nothing", file, one)
			}
		}
	}
}

func TestTheDashboardIsSound(t *testing.T) {
	b, err := os.ReadFile("grafana/forebay.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for i, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d (%q): its id is not its own, or it has no title or no query", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, other := range board.Panels[:i] {
			a, b := p.GridPos, other.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panels %q and %q lie over each other", p.Title, other.Title)
			}
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q is wider than the page", p.Title)
		}
	}
}
