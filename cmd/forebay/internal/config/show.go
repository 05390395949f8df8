package config

import (
	"fmt"
	"io"
	"net"
	"strings"
)

// Effective is one setting as it holds.
type Effective struct {
	Key     string `json:"key"`
	Value   string `json:"value"` // a secret is masked
	Source  string `json:"source"`
	Env     string `json:"env"` // the variable that sets it
	Allowed string `json:"allowed"`
	Doc     string `json:"doc"`
}

// Effective lists all settings in the order of the documentation.
func (s *Settings) Effective() []Effective {
	list := make([]Effective, 0, len(s.all))
	for _, one := range s.all {
		v := one.value.get()
		if one.secret {
			v = masked(v)
		}
		list = append(list, Effective{one.key, v, one.from.String(), one.envNames()[0], one.value.allowed, one.doc})
	}
	return list
}

// Queue gives the policy of a queue.
func (s *Settings) Queue(name string) Queue {
	if q, ok := s.Queues[name]; ok {
		return q
	}
	return s.Queues[DefaultQueue]
}

// Address is where to listen: a port alone means loopback unless the way in is
// guarded by keys, or the user said that it need not be.
func (s *Settings) Address(keys bool) string {
	a := s.Server.Listen
	switch {
	case strings.Contains(a, ":"):
		return a
	case keys || s.Server.Insecure:
		return ":" + a
	}
	return net.JoinHostPort("127.0.0.1", a)
}

// Example writes a settings file in which every setting stands, explained, with
// its default commented out. Groups whose members a user names, and which have no
// default, stand there as a comment as a whole.
func Example(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# forebay.yaml: every setting with its default. Flags and the environment weigh more.\n" +
		"# The program starts without this file; keep only the lines that you change.\n")
	writeExample(&b, newSettings().all, "# ")
	for _, g := range namedGroups[1:] {
		var inner strings.Builder
		writeExample(&inner, g.table("example"), "")
		for line := range strings.Lines(inner.String()) {
			if line != "\n" {
				line = "# " + line
			}
			b.WriteString(line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeExample writes settings with hash before each value.
func writeExample(b *strings.Builder, all []*setting, hash string) {
	group, top := "", ""
	for _, one := range all {
		dot := strings.LastIndexByte(one.key, '.')
		if g := one.key[:dot]; g != group {
			group = g
			b.WriteString("\n")
			for depth, part := range strings.Split(g, ".") {
				if depth > 0 || part != top {
					fmt.Fprintf(b, "%s%s:\n", strings.Repeat("  ", depth), part)
				}
			}
			top, _, _ = strings.Cut(g, ".")
		}
		indent := strings.Repeat("  ", strings.Count(one.key, "."))
		v := one.value.get()
		if v == "" {
			v = `""`
		}
		fmt.Fprintf(b, "%s# %s\n%s# Allowed: %s. Variable: %s.\n", indent, one.doc, indent, one.value.allowed, one.envNames()[0])
		fmt.Fprintf(b, "%s%s%s: %s\n", indent, hash, one.key[dot+1:], v)
	}
}
