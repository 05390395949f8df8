// Package e2e shows that events and jobs hold: the real binary, a real PostgreSQL,
// unmodified clients, and everything that goes wrong in between. Its tests carry
// the build tag e2e, since they take minutes; `make e2e` and `make test` run them.
//
// It promises to use nothing but what a user has: the binary, its HTTP routes, its
// sub-commands and the database.
package e2e
