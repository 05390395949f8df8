package enginetest

import "testing"

func runModel(t *testing.T, h Harness) {}
