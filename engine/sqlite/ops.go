package sqlite

// change is what ops that write have in common.
type change struct{}

func (change) size() int64   { return 256 }
func (change) publish(*tx)   {}
func (change) abort()        {}
func (change) durable() bool { return true }

// question is an op that reads only.
type question func(t *tx) error

func (question) size() int64         { return 64 }
func (f question) apply(t *tx) error { return f(t) }
func (question) publish(*tx)         {}
func (question) abort()              {}
func (question) durable() bool       { return false }
