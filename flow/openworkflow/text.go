package openworkflow

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay/flow"
)

// part of a text: an expression, or what stands around it.
type part struct{ expr, text string }

// texts finds the ${…} in a text; whole tells that it is one of them and nothing else.
func texts(s string) (parts []part, whole bool) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, part{text: text.String()})
			text.Reset()
		}
	}
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		if i > 0 && s[i-1] == '$' {
			text.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		end := closing(s[i+2:])
		if end < 0 {
			break
		}
		text.WriteString(s[:i])
		flush()
		parts = append(parts, part{expr: strings.TrimSpace(s[i+2 : i+2+end])})
		s = s[i+2+end+1:]
	}
	text.WriteString(s)
	flush()
	return parts, len(parts) == 1 && parts[0].expr != ""
}

// closing finds the brace that ends an expression.
func closing(s string) int {
	depth := 0
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
	}
	return -1
}

var iso = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// units of a duration that is a map.
var units = []struct {
	name string
	of   time.Duration
}{{"days", 24 * time.Hour}, {"hours", time.Hour}, {"minutes", time.Minute}, {"seconds", time.Second}, {"milliseconds", time.Millisecond}}

// durationOf reads a duration: a map of units, or ISO 8601 without months and years.
func durationOf(v any) (time.Duration, bool) {
	total := time.Duration(0)
	add := func(text string, of time.Duration) bool {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n < 0 || n*float64(of) > float64(1<<62) {
			return false
		}
		total += time.Duration(n * float64(of))
		return total >= 0
	}
	switch v := v.(type) {
	case object:
		for _, f := range v {
			known := false
			for _, u := range units {
				if u.name == f.key {
					known = add(fmt.Sprint(f.value), u.of)
				}
			}
			if !known {
				return 0, false
			}
		}
		return total, len(v) > 0
	case string:
		m := iso.FindStringSubmatch(v)
		if m == nil || strings.HasSuffix(v, "T") || v == "P" {
			return 0, false
		}
		for i, of := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
			if m[i+1] != "" && !add(m[i+1], of) {
				return 0, false
			}
		}
		return total, true
	}
	return 0, false
}

// asUnits writes a duration.
func asUnits(d time.Duration) object {
	out := object{}
	for _, u := range units {
		if n := d / u.of; n > 0 {
			out.set(u.name, int64(n))
			d -= n * u.of
		}
	}
	if len(out) == 0 {
		out.set("milliseconds", int64(1))
	}
	return out
}

// ours writes a duration as a file of ours has it.
func ours(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d >= day && d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	case d >= time.Hour && d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d >= time.Minute && d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	case d >= time.Second && d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.Round(time.Millisecond).String()
}

var notID = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// idOf makes an id of the name of a task.
func idOf(name string) string {
	id := strings.Trim(notID.ReplaceAllString(name, "_"), "_")
	if id == "" || id[0] >= '0' && id[0] <= '9' {
		id = "s_" + id
	}
	return id[:min(len(id), flow.MaxStepBytes-1)]
}
