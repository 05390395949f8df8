package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// DefaultFile is read when it is there and no other file was named.
const DefaultFile = "forebay.yaml"

// maxFile bounds the settings file.
const maxFile = 1 << 20

// Sources says where to look.
type Sources struct {
	File  string                      // empty: DefaultFile, if there is one
	Creds string                      // a folder with a file for each secret setting, named as it is; empty: none
	Env   func(string) (string, bool) // os.LookupEnv
	Flags []Flag
}

// Flag is a setting given on the command line.
type Flag struct {
	Name  string // as typed: "--listen"
	Key   string
	Value string
}

// Source is where a value came from.
type Source struct {
	Name         string // a file, "environment PORT", "flag --listen"; empty: the default
	Line, Column int    // of a file
}

func (s Source) String() string {
	switch {
	case s.Name == "":
		return "default"
	case s.Line == 0:
		return s.Name
	}
	return fmt.Sprintf("%s:%d:%d", s.Name, s.Line, s.Column)
}

// Problem is one setting that is wrong.
type Problem struct {
	At   Source
	Key  string
	Text string
}

func (p Problem) Error() string {
	if p.Key == "" {
		return fmt.Sprintf("%s: %s", p.At, p.Text)
	}
	return fmt.Sprintf("%s: %s: %s", p.At, p.Key, p.Text)
}

// Problems is all that is wrong, one per line.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Load reads all sources. Its error is Problems.
func Load(src Sources) (*Settings, error) {
	s := newSettings()
	problems := s.readFile(src.File)
	problems = append(problems, s.readCreds(src.Creds)...)
	problems = append(problems, s.readEnv(src.Env)...)
	problems = append(problems, s.readFlags(src.Flags)...)
	problems = append(problems, s.finish()...)
	if len(problems) > 0 {
		return nil, problems
	}
	return s, nil
}

func (s *Settings) readFile(name string) Problems {
	file := cmp.Or(name, DefaultFile)
	info, err := os.Stat(file)
	if name == "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var b []byte
	switch {
	case err != nil:
	case info.Size() > maxFile:
		err = fmt.Errorf("is larger than %d bytes", maxFile)
	default:
		b, err = os.ReadFile(file)
	}
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return Problems{{At: Source{Name: file}, Text: err.Error()}}
	}
	return s.readYAML(file, b)
}

func (s *Settings) readEnv(lookup func(string) (string, bool)) Problems {
	var problems Problems
	if lookup == nil {
		return nil
	}
	for _, one := range s.all {
		for _, name := range one.envNames() {
			v, ok := lookup(name)
			if !ok || v == "" { // an empty variable is how many shells unset one
				continue
			}
			problems = append(problems, one.take(v, Source{Name: "environment " + name})...)
		}
	}
	return problems
}

func (s *Settings) readFlags(flags []Flag) Problems {
	var problems Problems
	for _, f := range flags {
		at := Source{Name: "flag " + f.Name}
		one, text := s.find(f.Key)
		if one == nil {
			problems = append(problems, Problem{at, f.Key, text})
			continue
		}
		problems = append(problems, one.take(f.Value, at)...)
	}
	return problems
}

// envNames are the variables of a setting, the most specific last.
func (one *setting) envNames() []string {
	derived := "FOREBAY_" + strings.ToUpper(strings.ReplaceAll(one.key, ".", "_"))
	if one.env == "" {
		return []string{derived}
	}
	return []string{one.env, derived}
}

func (one *setting) take(v string, at Source) Problems {
	if err := one.value.set(v); err != nil {
		return Problems{{at, one.key, fmt.Sprintf("%s; allowed: %s", err, one.value.allowed)}}
	}
	one.from = at
	return nil
}

// find gives the setting of a key, or says what keys there are. What is named for
// the first time gets its lines in the table.
func (s *Settings) find(key string) (*setting, string) {
	if i := slices.IndexFunc(s.all, func(x *setting) bool { return x.key == key }); i >= 0 {
		return s.all[i], ""
	}
	for _, g := range namedGroups {
		name, _, ok := splitNamed(g, key)
		if ok && g.isName(name) && !s.knows(g.prefix+"."+name) {
			s.all = append(s.all, g.table(name)...)
			return s.find(key)
		}
	}
	group := ""
	if dot := strings.LastIndexByte(key, '.'); dot > 0 {
		group = key[:dot]
	}
	return nil, "is not a setting; allowed: " + strings.Join(s.below(group), ", ")
}

// knows tells whether key is a group that has settings.
func (s *Settings) knows(group string) bool { return groupOf(group) != nil || len(s.below(group)) > 0 }

// below lists the names one level under a group.
func (s *Settings) below(group string) []string {
	var names []string
	for _, one := range s.all {
		rest := one.key
		if group != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(one.key, group+"."); !ok {
				continue
			}
		}
		name, _, _ := strings.Cut(rest, ".")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, g := range namedGroups {
		if group == "" && !slices.Contains(names, g.prefix) {
			names = append(names, g.prefix)
		}
	}
	return names
}
