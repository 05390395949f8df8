package redis

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
)

// Answers of a server that does nothing now are asked again; what may have been done is not.
func TestErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	e := &Engine{}
	for _, c := range []struct {
		says   string
		undone bool
		code   forebay.Code
	}{
		{"LOADING Redis is loading the dataset in memory", true, forebay.CodeUnavailable},
		{"READONLY You can't write against a read only replica.", true, forebay.CodeUnavailable},
		{"CLUSTERDOWN Hash slot not served", true, forebay.CodeUnavailable},
		{"MASTERDOWN Link with MASTER is down", true, forebay.CodeUnavailable},
		{"NOREPLICAS Not enough good replicas to write.", true, forebay.CodeUnavailable},
		{"BUSY Redis is busy running a script.", true, forebay.CodeUnavailable},
		{"TRYAGAIN Multiple keys request during rehashing of slot", true, forebay.CodeUnavailable},
		{"UNBLOCKED force unblock from blocking operation", false, forebay.CodeUnavailable},
		{"OOM command not allowed when used memory > 'maxmemory'.", false, forebay.CodeFull},
		{"NOAUTH Authentication required.", false, forebay.CodeUnavailable},
		{"NOPERM No permissions to run the 'evalsha' command", false, forebay.CodeUnavailable},
		{"ERR user_script:1: attempt to index a nil value", false, forebay.CodeInternal},
		{io.EOF.Error(), false, forebay.CodeUnavailable},
	} {
		err := errors.New(c.says)
		if got := undone(err); got != c.undone {
			t.Errorf("%s: that nothing was done is %v", c.says, got)
		}
		if got := forebay.CodeOf(e.fault(err)); got != c.code {
			t.Errorf("%s has code %s, want %s", c.says, got, c.code)
		}
		// Who starts the process can mend what it may do there; callers cannot.
		denied := strings.HasPrefix(c.says, "NO") && c.says[:4] != "NORE"
		if got := forebay.CodeOf(opening(e.fault(err))); (got == forebay.CodeUnauthorized) != denied {
			t.Errorf("%s has code %s at the start", c.says, got)
		}
		var coded *forebay.Error
		if errors.As(e.fault(err), &coded); denied && (coded.Hint == "" || !strings.Contains(coded.Text, c.says)) {
			t.Errorf("%s tells an operator %q, %q", c.says, coded.Text, coded.Hint)
		}
	}
}

// Redis keeps milliseconds; what is cut off would let a job begin too early.
func TestNotBeforeIsRoundedUp(t *testing.T) {
	for ns, want := range map[int64]int64{5_000_000: 5, 5_000_001: 6, 5_999_999: 6, 1: 1} {
		if got := notBefore(time.Unix(0, ns)); got != want {
			t.Errorf("%d ns are %d ms, want %d", ns, got, want)
		}
	}
	if got := notBefore(time.Time{}); got != 0 {
		t.Errorf("no time is %d", got)
	}
}
