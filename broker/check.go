package broker

import (
	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func invalid(field, format string, args ...any) *forebay.Error {
	e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
	e.Field = field
	return e
}

func checkReceive(r engine.Receive) error {
	if err := engine.CheckQueue(r.Queue); err != nil {
		return err
	}
	if r.Max < 1 || r.Max > engine.MaxReceive {
		return invalid("max", "max is %d; 1 to %d are allowed", r.Max, engine.MaxReceive)
	}
	if r.Wait < 0 || r.Wait > engine.MaxWait {
		return invalid("wait", "wait is %s; 0 to %s are allowed", r.Wait, engine.MaxWait)
	}
	if r.Lease != 0 && (r.Lease < engine.MinLease || r.Lease > engine.MaxLease) {
		return invalid("lease", "lease is %s; %s to %s are allowed, or 0 for %s", r.Lease, engine.MinLease, engine.MaxLease, forebay.DefaultLease)
	}
	return nil
}
