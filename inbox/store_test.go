package inbox_test

import (
	"testing"

	"github.com/forebayhq/forebay/engine"
)

func documents(t *testing.T) engine.Documents { return &memory{} }
