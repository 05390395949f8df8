package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"

	"github.com/rogpeppe/go-internal/testscript"
)

// A process with a race detector takes half a second to begin, which most commands of a
// script would do for a question that is answered at once. So each script has one process,
// askedProgram, that runs them one after the other as main would, in the folder and with the
// environment of the script's beginning, and what scripts change of it: told. Servers, and
// what is given an input, are processes of their own: exec.
const askedProgram = "forebay-asked"

var told = []string{"EDITOR", "FOREBAY_URL", "DATABASE_URL", "PORT"}

type question struct {
	Args []string
	Told map[string]string
}

type answer struct {
	Code     int
	Out, Err []byte
}

// asked is the side of the process.
func asked() {
	keepPrivate()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var q question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			panic(err)
		}
		var says, errs bytes.Buffer
		p := &program{in: bytes.NewReader(nil), out: &says, err: &errs, lookup: os.LookupEnv}
		for name, value := range q.Told {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
			if value == "" {
				_ = os.Unsetenv(name) // it was set just now
			}
		}
		code := p.run(q.Args)
		if err := out.Encode(answer{code, says.Bytes(), errs.Bytes()}); err != nil {
			panic(err)
		}
	}
}

// asking is the side of a script.
type asking struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
	log bytes.Buffer // what the race detector or a panic says
}

type askingKey struct{}

func startAsking(env *testscript.Env) error {
	a := &asking{cmd: exec.Command(askedProgram)}
	a.cmd.Dir, a.cmd.Env, a.cmd.Stderr = env.WorkDir, slices.Clone(env.Vars), &a.log
	var err error
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	a.out = json.NewDecoder(out)
	if err := a.cmd.Start(); err != nil {
		return err
	}
	env.Values[askingKey{}] = a
	env.Defer(func() {
		_ = a.in.Close()
		if err := a.cmd.Wait(); err != nil {
			env.T().Log(err, a.log.String())
			env.T().FailNow()
		}
	})
	return nil
}

// ask PROGRAM ARGS…: as exec, by the process that is there.
func askCmd(ts *testscript.TestScript, neg bool, args []string) {
	a := ask(ts, args)
	_, _ = ts.Stdout().Write(a.Out) // into memory
	_, _ = ts.Stderr().Write(a.Err)
	if neg == (a.Code == 0) {
		ts.Fatalf("exit code %d\n%s%s", a.Code, a.Out, a.Err)
	}
}

func ask(ts *testscript.TestScript, args []string) answer {
	if len(args) < 2 || !askable(args) {
		ts.Fatalf("usage: ask forebay args…, but no server")
	}
	by := ts.Value(askingKey{}).(*asking)
	q := question{args[1:], make(map[string]string)}
	for _, name := range told {
		q.Told[name] = ts.Getenv(name)
	}
	err := json.NewEncoder(by.in).Encode(q)
	var a answer
	if err == nil {
		err = by.out.Decode(&a)
	}
	if err != nil {
		ts.Fatalf("%v: %s", err, by.log.String())
	}
	return a
}

func askable(args []string) bool {
	return args[0] == "forebay" && len(args) > 1 && !slices.Contains([]string{"serve", "demo", "bench"}, args[1])
}

// runs runs a program and gives its exit code and what it wrote.
func runs(ts *testscript.TestScript, args []string) answer {
	if askable(args) {
		return ask(ts, args)
	}
	var a answer
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		a.Code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	a.Out, a.Err = fmt.Append(nil, ts.ReadFile("stdout")), fmt.Append(nil, ts.ReadFile("stderr"))
	return a
}
