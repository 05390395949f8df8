package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// setting is one line of the table: what a user can set, and how.
type setting struct {
	key    string // "server.listen"
	env    string // a name of its own, where people know one; FOREBAY_<KEY> works for all
	doc    string
	secret bool
	value  value
	from   Source

	queue   *Queue   // set for queues.<name>.*
	handler *Handler // handlers.<kind>.*
	report  *Report  // reports.<name>.*
	rule    *Rule    // rules.<name>.*

	sqsQueue *SQSQueue // sqsQueues.<name>.*

	encryptionKey *EncryptionKey // encryptionKeys.<id>.*
}

// value parses and shows the value of one setting.
type value struct {
	set     func(string) error // the error says what is wrong, not what is allowed
	get     func() string
	allowed string
	list    bool // takes a YAML list too
}

func text(p *string, def string, most int) value {
	*p = def
	return value{
		get:     func() string { return *p },
		allowed: fmt.Sprintf("text of at most %d bytes", most),
		set: func(s string) error {
			if len(s) > most {
				return fmt.Errorf("is %d bytes long", len(s))
			}
			*p = s
			return nil
		},
	}
}

func flag(p *bool, def bool) value {
	*p = def
	return value{
		get:     func() string { return strconv.FormatBool(*p) },
		allowed: "true or false",
		set: func(s string) error {
			if s != "true" && s != "false" {
				return fmt.Errorf("%q is neither", s)
			}
			*p = s == "true"
			return nil
		},
	}
}

// choice takes one of some words; the first is the default.
func choice(p *string, words ...string) value {
	*p = words[0]
	return value{
		get:     func() string { return *p },
		allowed: strings.Join(words, ", "),
		set: func(s string) error {
			if !slices.Contains(words, s) {
				return fmt.Errorf("%q is none of these", s)
			}
			*p = s
			return nil
		},
	}
}

func number(p *int64, def, least, most int64) value {
	*p = def
	return value{
		get:     func() string { return strconv.FormatInt(*p, 10) },
		allowed: fmt.Sprintf("a whole number from %d to %d", least, most),
		set: func(s string) error {
			n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
			if err != nil {
				return fmt.Errorf("%q is not a whole number", s)
			}
			if n < least || n > most {
				return fmt.Errorf("%d is out of range", n)
			}
			*p = n
			return nil
		},
	}
}

// numberOr takes a word for 0, too.
func numberOr(word string, p *int64, def, least, most int64) value {
	v := number(p, def, least, most)
	plain := v
	v.allowed = word + ", or " + plain.allowed
	v.get = func() string {
		if *p == 0 {
			return word
		}
		return plain.get()
	}
	v.set = func(s string) error {
		if s == word {
			*p = 0
			return nil
		}
		return plain.set(s)
	}
	return v
}

func size(p *int64, def, least, most int64) value {
	*p = def
	return value{
		get:     func() string { return showSize(*p) },
		allowed: fmt.Sprintf("a size from %s to %s, like 64KB or 4MiB", showSize(least), showSize(most)),
		set: func(s string) error {
			n, err := humanize.ParseBytes(s)
			if err != nil {
				return fmt.Errorf("%q is not a size", s)
			}
			if n < uint64(least) || n > uint64(most) {
				return fmt.Errorf("%s is out of range", s)
			}
			*p = int64(n)
			return nil
		},
	}
}

// showSize is exact, so that what it shows can be set again.
func showSize(n int64) string {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"GiB", gib}, {"MiB", mib}, {"KiB", kib}, {"KB", kb}} {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

func duration(p *time.Duration, def, least, most time.Duration) value {
	*p = def
	return value{
		get:     func() string { return showDuration(*p) },
		allowed: fmt.Sprintf("a time from %s to %s, like 500ms, 30s or 7d", showDuration(least), showDuration(most)),
		set: func(s string) error {
			d, err := parseDuration(s)
			if err != nil {
				return fmt.Errorf("%q is not a time", s)
			}
			if d < least || d > most {
				return fmt.Errorf("%s is out of range", s)
			}
			*p = d
			return nil
		},
	}
}

// parseDuration is time.ParseDuration and whole days.
func parseDuration(s string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		days, err := strconv.ParseInt(n, 10, 32)
		return time.Duration(days) * day, err
	}
	return time.ParseDuration(s)
}

func showDuration(d time.Duration) string {
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if d >= time.Minute { // 5m0s, 1h0m0s
		s = strings.TrimSuffix(s, "0s")
		if d >= time.Hour {
			s = strings.TrimSuffix(s, "0m")
		}
	}
	return s
}

// address takes "host:port", ":port" or a port alone.
func address(p *string, def string) value {
	*p = def
	return value{
		get:     func() string { return *p },
		allowed: "host:port, or a port from 0 to 65535 (0: any free one)",
		set: func(s string) error {
			port := s
			if strings.Contains(s, ":") {
				var err error
				if _, port, err = net.SplitHostPort(s); err != nil {
					return fmt.Errorf("%q is not an address", s)
				}
			}
			if _, err := strconv.ParseUint(port, 10, 16); err != nil {
				return fmt.Errorf("%q has no port in range", s)
			}
			*p = s
			return nil
		},
	}
}

func databaseURL(p *string) value {
	return value{
		get:     func() string { return *p },
		allowed: "postgres://user:password@host:port/database, or nothing",
		set: func(s string) error {
			u, err := url.Parse(s)
			// The text of a wrong address may hold its password: it is not shown.
			if s != "" && (err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql") {
				return fmt.Errorf("is not the address of a PostgreSQL database")
			}
			*p = s
			return nil
		},
	}
}

// masked shows a secret setting without its secret.
func masked(s string) string {
	if s == "" {
		return s
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "xxxxx"
	}
	u.RawQuery = "" // it may carry a password too
	return u.Redacted()
}
