package deploy

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// unit is a unit of systemd: section, name, values in their order.
type unit map[string]map[string][]string

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	b, err := os.ReadFile("systemd/" + name)
	if err != nil {
		t.Fatal(err)
	}
	u, section := unit{}, ""
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			section = strings.Trim(line, "[]")
			u[section] = map[string][]string{}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section == "" {
			t.Fatalf("%s:%d: %q", name, i+1, line)
		}
		u[section][key] = append(u[section][key], value)
	}
	return u
}

// The units agree with the program and with each other: the names of sockets, how long a
// stop may take, that it tells when it is ready. The real verification is test/deploy/run.sh,
// on hosts that run them.
func TestUnitsAgree(t *testing.T) {
	for _, name := range []string{"forebay.service", "forebay@.service"} {
		s := readUnit(t, name)["Service"]
		for key, want := range map[string]string{
			"Type": "notify", "NotifyAccess": "main", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "User": "forebay",
			"CapabilityBoundingSet": "", "RestartPreventExitStatus": "2", "StateDirectoryMode": "0700",
		} {
			if got := s[key]; len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s=%v, want %s", name, key, got, want)
			}
		}
		const grace, drain = 60, 20 // the longest of server.grace, the default of server.drain
		if stop, err := strconv.Atoi(s["TimeoutStopSec"][0]); err != nil || stop < grace+drain {
			t.Errorf("%s is killed after %d s, %v; it may take %d", name, stop, err, grace+drain)
		}
		if !strings.Contains(s["ExecStartPre"][0], " config ") {
			t.Errorf("%s starts without a check of its settings", name)
		}
	}
	single, double := readUnit(t, "forebay.service")["Service"], readUnit(t, "forebay@.service")["Service"]
	for key, values := range single {
		if strings.HasPrefix(key, "Protect") || strings.HasPrefix(key, "Restrict") || strings.HasPrefix(key, "SystemCall") {
			if strings.Join(values, " ") != strings.Join(double[key], " ") {
				t.Errorf("%s is %v alone, and %v side by side", key, values, double[key])
			}
		}
	}
	for name, socket := range map[string]string{"forebay.socket": "http", "forebay-sqs.socket": "sqs"} {
		s := readUnit(t, name)["Socket"]
		if s["FileDescriptorName"][0] != socket || s["Service"][0] != "forebay.service" || !strings.HasPrefix(s["ListenStream"][0], "127.0.0.1:") {
			t.Errorf("%s: %v", name, s)
		}
	}
}
