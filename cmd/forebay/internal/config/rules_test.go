package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/monitor"
)

func TestRulesOfAlerts(t *testing.T) {
	if got, want := fmt.Sprint(measures), fmt.Sprint(monitor.Measures); got != want {
		t.Errorf("what can be set is %s; what is measured is %s", got, want)
	}
	s, err := loadEnv(map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range builtIn {
		r := s.Rules[b.name]
		if r.Of != b.of || r.Over.Text != b.over || r.Under.Text != b.under || r.Off() != (b.name == "quiet") || r.Every != time.Hour {
			t.Errorf("%s: %+v", b.name, r)
		}
	}
	if age, disk := s.Rules["age"].Over.Value, s.Rules["disk"].Under.Value; age != 900 || disk != 512<<20 {
		t.Errorf("age over %v seconds, disk under %v bytes", age, disk)
	}
	for text, want := range map[string]float64{"0.5": 0.5, "15m": 900, "7d": 604800, "1GiB": 1 << 30, "1e3": 1000} {
		var r Threshold
		if err := threshold(&r, "").set(text); err != nil || r.Value != want {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"-1", "NaN", "Inf", "soon", "-5m"} {
		if err := threshold(&Threshold{}, "").set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	_, err = loadEnv(map[string]string{"FOREBAY_RULES_DISK_OVER": "1"})
	if err == nil || !strings.Contains(err.Error(), "rules.disk: has over and under") {
		t.Errorf("%v", err)
	}
	if _, err = loadEnv(map[string]string{"FOREBAY_SERVER_TLSCERT": "x"}); err == nil || !strings.Contains(err.Error(), "goes together with tlsKey") {
		t.Errorf("%v", err)
	}
}
