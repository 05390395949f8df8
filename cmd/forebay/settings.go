package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// settingsFlags are the settings that a command line can give.
type settingsFlags struct {
	Config   string   `short:"c" placeholder:"FILE" help:"Settings file (default: forebay.yaml, if there is one)."`
	Data     string   `placeholder:"DIR" help:"Data folder (setting data.dir; default: data)."`
	Listen   string   `placeholder:"ADDR" help:"host:port or a port (setting server.listen; default: 127.0.0.1:8080)."`
	Insecure bool     `help:"Allow listening beyond loopback without keys (setting server.insecure)."`
	Roles    string   `placeholder:"LIST" help:"What this server does: some of ingest,api,worker,console (setting server.roles; default: all)."`
	SQS      string   `name:"sqs-listen" placeholder:"ADDR" help:"host:port of the SQS endpoint, or off (setting sqsApi.listen; default: 127.0.0.1:9324)."`
	Set      []string `sep:"none" placeholder:"KEY=VALUE" help:"Any other setting, by its name in the file; may be repeated."`
}

func (f settingsFlags) load(p *program) (*config.Settings, error) {
	var flags []config.Flag
	for _, one := range f.Set {
		key, v, ok := strings.Cut(one, "=")
		if !ok {
			return nil, usage(fmt.Errorf("--set %s: is not KEY=VALUE", one))
		}
		flags = append(flags, config.Flag{Name: "--set", Key: key, Value: v})
	}
	if f.Data != "" {
		flags = append(flags, config.Flag{Name: "--data", Key: "data.dir", Value: f.Data})
	}
	if f.Listen != "" {
		flags = append(flags, config.Flag{Name: "--listen", Key: "server.listen", Value: f.Listen})
	}
	if f.Roles != "" {
		flags = append(flags, config.Flag{Name: "--roles", Key: "server.roles", Value: f.Roles})
	}
	if f.SQS != "" {
		flags = append(flags, config.Flag{Name: "--sqs-listen", Key: "sqsApi.listen", Value: f.SQS})
	}
	if f.Insecure {
		flags = append(flags, config.Flag{Name: "--insecure", Key: "server.insecure", Value: strconv.FormatBool(true)})
	}
	creds, _ := p.lookup("CREDENTIALS_DIRECTORY") // systemd's LoadCredential=
	return config.Load(config.Sources{File: f.Config, Creds: creds, Env: p.lookup, Flags: flags})
}

type configCmd struct {
	settingsFlags `embed:""`
	Example       bool `help:"Print a settings file with every setting explained."`
}

func (configCmd) Help() string {
	return `Examples:
  forebay config
  PORT=9000 forebay config --set sink.batchAge=250ms
  forebay config --example > forebay.yaml`
}

func (c *configCmd) Run(p *program) error {
	if c.Example {
		return config.Example(p.out)
	}
	s, err := c.load(p)
	if err != nil {
		return err
	}
	all := s.Effective()
	return p.print(all, func(w io.Writer) {
		for _, one := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\n", one.Key, one.Value, one.Source)
		}
	})
}
