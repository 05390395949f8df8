package build_test

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/build"
)

// A flow in Go is the file that somebody would have written. runner.Put stores it.
func Example() {
	f := build.New("signup").Timeout(time.Hour)
	create := f.Job("create", "create-user").With("${input}").Retry(5, time.Second, time.Minute).OnFailure(flow.DeadLetter)
	f.Job("welcome", "send-mail").After(create).Queue("notifications").With("${steps.create.output.email}").OnFailure(flow.Skip)
	f.Job("workspace", "make-workspace").After(create).When("input.plan != 'none'")
	src, err := f.Source()
	fmt.Printf("%s%v\n", src, err)
	// Output:
	// flow: signup
	// timeout: "1h0m0s"
	//
	// steps:
	//   create: {"use":"create-user","with":"${input}","retry":{"attempts":5,"base":"1s","cap":"1m0s"},"on_failure":"dead_letter"}
	//   welcome: {"use":"send-mail","needs":["create"],"queue":"notifications","with":"${steps.create.output.email}","on_failure":"skip"}
	//   workspace: {"use":"make-workspace","needs":["create"],"when":"input.plan != 'none'"}
	// <nil>
}
