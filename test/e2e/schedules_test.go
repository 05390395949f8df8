//go:build e2e && linux

package e2e

import (
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// outage is a time without a server: from just after it was ended to just before it
// was started again.
type outage struct{ from, to time.Time }

func (o outage) has(t time.Time) bool { return t.After(o.from) && t.Before(o.to) }

// Schedules of one second over three restarts: no tick has two jobs, and those that
// came due meanwhile are made up for as each schedule says.
func TestSchedulesOverRestarts(t *testing.T) {
	s := jobServer(t)
	for name, missed := range map[string]string{"each": "all", "one": "once"} {
		s.must(http.StatusOK, http.MethodPut, "/api/schedules/"+name,
			options{"every": "1s", "missed": missed, "job": options{"queue": "ticks", "name": name}}, nil)
	}
	began := time.Now()
	var outages []outage
	for n := range 3 {
		wait(t, 1500*time.Millisecond)
		if n == 1 {
			s.terminate(45 * time.Second)
		} else {
			s.kill()
		}
		from := time.Now()
		wait(t, 3500*time.Millisecond)
		outages = append(outages, outage{from, time.Now()})
		s.start()
	}
	wait(t, 1500*time.Millisecond)
	for _, name := range []string{"each", "one"} {
		s.must(http.StatusOK, http.MethodPost, "/api/schedules/"+name+"/pause", nil, nil)
	}

	ticks := s.ticks("ticks")
	for name, all := range ticks {
		slices.SortFunc(all, time.Time.Compare)
		if twice := len(all) - len(slices.Compact(slices.Clone(all))); twice != 0 {
			t.Errorf("%s: %d ticks have two jobs: %v", name, twice, all)
		}
	}
	each := ticks["each"]
	for i := 1; i < len(each); i++ {
		if d := each[i].Sub(each[i-1]); d != time.Second {
			t.Errorf("each: no job for what is between %s and %s", each[i-1], each[i])
		}
	}
	if len(each) == 0 || each[0].Sub(began) > 2*time.Second {
		t.Errorf("each: its ticks are %v; it was made at %s", each, began)
	}
	for _, o := range outages {
		made := map[string]int{}
		for name, all := range ticks {
			for _, tick := range all {
				if o.has(tick) {
					made[name]++
				}
			}
		}
		if made["each"] < 3 || made["one"] > 1 {
			t.Errorf("of ticks between %s and %s there are jobs %v; want 3 or more of each, 1 at most of one", o.from, o.to, made)
		}
	}
	t.Logf("%d ticks of each, %d of one, over three outages of 3.5 s", len(each), len(ticks["one"]))
}

// ticks leases all jobs of a queue, and gives their ticks by the name of the schedule.
func (s *server) ticks(queue string) map[string][]time.Time {
	s.t.Helper()
	all := map[string][]time.Time{}
	for {
		var leased struct{ Items []job }
		s.must(http.StatusOK, http.MethodPost, "/api/queues/"+queue+"/lease", options{"max": 1000, "leaseSeconds": 3600}, &leased)
		if len(leased.Items) == 0 {
			return all
		}
		for _, j := range leased.Items {
			tick, err := time.Parse(time.RFC3339Nano, j.Headers["tick"])
			if err != nil || j.Headers["schedule"] != j.Name {
				s.t.Errorf("a job of a schedule: %+v: %v", j, err)
			}
			all[j.Name] = append(all[j.Name], tick)
		}
	}
}

// Whoever would work on the same folder from a second process is told so in one line,
// and the first one goes on as if nothing had been.
func TestSecondProcess(t *testing.T) {
	s := jobServer(t, script(t, "node", "handler.mjs")...)
	id := s.add("work", "node", options{"do": "talk", "n": 100, "pause": 20}, nil)
	s.await(id, time.Minute, "active")
	second := exec.Command(binary, "serve", "--data", s.data, "--listen", "127.0.0.1:0")
	second.Env = cleanEnv()
	out, err := second.CombinedOutput()
	if err == nil || second.ProcessState.ExitCode() != 3 {
		t.Errorf("the second process ended with %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n") // the second one says what to do
	if len(lines) != 2 || !strings.Contains(lines[0], "in use by process") {
		t.Errorf("it said:\n%s", out)
	}
	if n := s.completedOnce([]string{id}, time.Minute); n != 0 {
		t.Errorf("the job of the first one was interrupted %d times", n)
	}
}
