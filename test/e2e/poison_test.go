//go:build e2e && linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// deadLetter is what `forebay dead ls --json` says of one.
type deadLetter struct {
	Seq     int64 `json:"seq"`
	Message struct {
		ID string `json:"id"`
	} `json:"message"`
	Cause struct {
		Code    string            `json:"code"`
		Message string            `json:"message"`
		Detail  map[string]string `json:"detail"`
	} `json:"cause"`
}

func (s *server) dead() []deadLetter {
	s.t.Helper()
	out := s.mustForebay("dead", "ls", "--json")
	var list []deadLetter
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		s.t.Fatalf("dead ls --json: %v: %s", err, out)
	}
	return list
}

// One row of 1,000 breaks a rule of the table: the others are written at once, it
// is a dead letter that says what is wrong, and lands once when that is mended.
func TestPoisonRow(t *testing.T) {
	url := pgtest.Database(t)
	s := serve(t, url)
	db := connect(t, url)
	db.exec(`ALTER TABLE events ADD CONSTRAINT no_vip CHECK (user_id <> 'vip')`)

	const poison = 617
	var batch bytes.Buffer
	batch.WriteByte('[')
	for i := range 1000 {
		user := fmt.Sprintf("u%d", i%50)
		if i == poison {
			user = "vip"
		}
		if i > 0 {
			batch.WriteByte(',')
		}
		fmt.Fprintf(&batch, `{"eventType":"order","eventId":"order-%03d","userId":%q,"payload":{"n":%d}}`, i, user, i)
	}
	batch.WriteByte(']')
	status, body, err := post(t.Context(), s.url+"/ingest/batch", batch.Bytes(), nil)
	if err != nil || status != http.StatusAccepted {
		t.Fatalf("status %d, %v: %s", status, err, body)
	}

	if !eventually(t, 2*time.Second, func() bool { return db.count(`SELECT count(*) FROM events`) == 999 }) {
		t.Errorf("%d rows are written, want 999", db.count(`SELECT count(*) FROM events`))
	}
	var dead []deadLetter
	if !eventually(t, 2*time.Second, func() bool { dead = s.dead(); return len(dead) > 0 }) || len(dead) != 1 {
		t.Fatalf("%d dead letters, want 1", len(dead))
	}
	const checkViolation = "23514"
	if d := dead[0]; d.Message.ID != fmt.Sprintf("order-%03d", poison) || d.Cause.Code != checkViolation ||
		d.Cause.Detail["column"] != "user_id" || d.Cause.Detail["constraint"] != "no_vip" {
		t.Errorf("the dead letter does not say what is wrong: %+v", d)
	}

	db.exec(`ALTER TABLE events DROP CONSTRAINT no_vip`)
	s.mustForebay("dead", "replay", fmt.Sprint(dead[0].Seq))
	landed := func() bool {
		return db.count(`SELECT count(*) FROM events WHERE event_id = $1`, dead[0].Message.ID) == 1
	}
	if !eventually(t, 10*time.Second, landed) {
		t.Error("the replayed event is not in the database")
	}
	if n := db.count(`SELECT count(*) FROM events`); n != 1000 {
		t.Errorf("%d rows at the end, want 1000", n)
	}
	if again := s.dead(); len(again) != 0 {
		t.Errorf("still dead: %+v", again)
	}
}
