package schedule

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/forebayhq/forebay"
)

// A cron text is read field by field, so that an error can say where it is.

type cronField struct {
	name, allowed, any string
}

var cronFields = [...]cronField{
	{"second", "0 to 59", "0"},
	{"minute", "0 to 59", "0"},
	{"hour", "0 to 23", "0"},
	{"day of the month", "1 to 31", "*"},
	{"month", "1 to 12 or jan to dec", "*"},
	{"day of the week", "0 to 6 or sun to sat, 0 is Sunday", "*"},
}

var cronNames = map[string]string{
	"@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *", "@weekly": "0 0 0 * * 0",
	"@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *", "@hourly": "0 0 * * * *",
}

const cronShape = "allowed are five fields (minute, hour, day of the month, month, day of the week), six with the second before them, or @hourly, @daily, @weekly, @monthly, @yearly"

var cronParser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parseCron reads a cron text. Its times are those of UTC; what they are elsewhere,
// ticks decides.
func parseCron(text string) (*cron.SpecSchedule, error) {
	if len(text) > MaxCronBytes {
		return nil, wrong("cron", "the cron text has %d bytes; at most %d are allowed", len(text), MaxCronBytes)
	}
	if whole, ok := cronNames[strings.TrimSpace(text)]; ok {
		text = whole
	}
	parts, err := splitCron(text)
	if err != nil {
		return nil, err
	}
	fields := cronFields[len(cronFields)-len(parts):]
	values := make([]string, 0, len(cronFields))
	if len(parts) < len(cronFields) {
		values = append(values, "0")
	}
	for i, p := range parts {
		if err := checkCronField(fields, i, p); err != nil {
			return nil, err
		}
		values = append(values, p.text)
	}
	spec, err := cronSpec(values)
	if err != nil {
		return nil, wrong("cron", "the cron text %q: %s; %s", text, err.Error(), cronShape)
	}
	return spec, nil
}

func cronSpec(values []string) (*cron.SpecSchedule, error) {
	s, err := cronParser.Parse(strings.Join(values, " "))
	if err != nil {
		return nil, err
	}
	spec, ok := s.(*cron.SpecSchedule)
	if !ok {
		return nil, forebay.Errorf(forebay.CodeInternal, "schedule: cron", "fields give a %T", s)
	}
	spec.Location = time.UTC
	return spec, nil
}

// cronPart is a field of a text, and where it begins, counted from 1.
type cronPart struct {
	text string
	at   int
}

func splitCron(text string) ([]cronPart, error) {
	var parts []cronPart
	for i := 0; i < len(text); {
		if text[i] == ' ' || text[i] == '\t' {
			i++
			continue
		}
		end := i
		for ; end < len(text) && text[end] != ' ' && text[end] != '\t'; end++ {
			if c := text[end]; c <= ' ' || c > '~' {
				return nil, wrong("cron", "the cron text has a character at position %d that is not allowed; %s", end+1, cronShape)
			}
		}
		parts = append(parts, cronPart{text[i:end], i + 1})
		i = end
	}
	switch {
	case len(parts) == 0:
		return nil, wrong("cron", "the cron text is empty; %s", cronShape)
	case strings.Contains(parts[0].text, "TZ="):
		return nil, wrong("cron", "the cron text names a zone at position %d; the field timezone does", parts[0].at)
	case parts[0].text == "@every":
		return nil, wrong("cron", "the cron text has @every at position %d; the field every says how often, such as 90s", parts[0].at)
	case parts[0].text[0] == '@':
		return nil, wrong("cron", "%q at position %d is not known; %s", parts[0].text, parts[0].at, cronShape)
	case len(parts) < len(cronFields)-1:
		return nil, wrong("cron", "the cron text %q ends after %d fields, at position %d; %s", text, len(parts), len(text), cronShape)
	case len(parts) > len(cronFields):
		p := parts[len(cronFields)]
		return nil, wrong("cron", "the cron text has a field too many, %q at position %d; %s", p.text, p.at, cronShape)
	}
	return parts, nil
}

// checkCronField tries each item of a field by itself, to find the one that is wrong.
func checkCronField(fields []cronField, i int, p cronPart) error {
	at := p.at
	values := make([]string, len(cronFields))
	for k, f := range cronFields {
		values[k] = f.any
	}
	own := len(cronFields) - len(fields) + i
	for _, item := range strings.Split(p.text, ",") {
		values[own] = item
		if _, err := cronSpec(values); item == "" || err != nil {
			return wrong("cron", "the %s %q at position %d is not allowed; %s, * for each, lists such as 1,2, ranges such as 1-5 and steps such as */2 or 1-5/2 are",
				fields[i].name, item, at, fields[i].allowed)
		}
		at += len(item) + 1
	}
	return nil
}
