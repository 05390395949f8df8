package enginetest

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/forebayhq/forebay/engine"
)

func TestGapsReplaceCasesThatExist(t *testing.T) {
	for a, g := range gaps() {
		for _, name := range g.replaces {
			if !slices.ContainsFunc(cases(), func(c testCase) bool { return c.name == name }) {
				t.Errorf("%s replaces the case %q, which does not exist", a, name)
			}
		}
	}
}

// verdict is a testing.TB that notes a failure instead of ending the test.
type gapVerdict struct {
	testing.TB
	failed bool
}

func (v *gapVerdict) Helper()               {}
func (v *gapVerdict) Logf(string, ...any)   {}
func (v *gapVerdict) Errorf(string, ...any) { v.failed = true }
func (v *gapVerdict) Fatalf(string, ...any) {
	v.failed = true
	panic(v)
}

// An engine that can do it all must not pass by claiming a gap.
func TestGapsAreNotClaimedForNothing(t *testing.T) {
	for a := range gaps() {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				v := &gapVerdict{TB: t}
				h := Harness{Open: func(testing.TB) engine.Engine { return NewModel() }, Cannot: map[Ability]string{a: "it can"}}.withDefaults(t)
				func() {
					defer func() {
						if r := recover(); r != nil && r != any(v) {
							panic(r)
						}
					}()
					runCase(v, h, refusal(a))
				}()
				if !v.failed {
					t.Errorf("an engine with the ability passes as one without")
				}
			})
		})
	}
}
