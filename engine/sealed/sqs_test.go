package sealed_test

import (
	"bytes"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sealed"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/engine/sqs"
	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/queue"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

// What goes to SQS is sealed before it leaves, and opened by whoever has the key; a message
// of somebody else is read as it is.
func TestOverSQS(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	there := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))
	service := must[*queue.Service](t)(queue.New(queue.Config{Engine: there}))
	access := must[*sign.Keys](t)(sign.Open(t.TempDir()+"/keys", sign.Config{}))
	front := must[*sqsapi.Front](t)(sqsapi.New(sqsapi.Config{Service: service, Keys: access, Unsigned: true}))
	server := httptest.NewServer(front)
	t.Cleanup(func() { front.Close(); server.Close(); there.Close() })
	open := func(k *sealed.Keys) *sealed.Engine {
		return over(t, must[*sqs.Engine](t)(sqs.Open(t.Context(), sqs.Config{Endpoint: server.URL, Region: "us-east-1", Create: true})), k)
	}
	mine := open(keys(t, "k1"))
	defer mine.Close()
	message := func(id, payload string) forebay.Message {
		return forebay.Message{ID: id, Queue: "q", Kind: "k", Payload: []byte(payload)}
	}
	send(t, mine, message("a", secret), message("b", strings.Repeat(secret, 50_000)))
	page := must[engine.PeekPage](t)(there.Peek(t.Context(), engine.PeekQuery{Queue: "q"}))
	if len(page.Messages) != 2 {
		t.Fatalf("%d messages are there", len(page.Messages))
	}
	for _, m := range page.Messages {
		if bytes.Contains(m.Message.Payload, []byte(secret)) {
			t.Errorf("%s says %q", m.Message.ID, m.Message.Payload)
		}
	}
	random := make([]byte, maxPlainOverSQS)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(random) // never fails
	res := must[[]forebay.SendResult](t)(mine.Send(t.Context(), []forebay.Message{message("fits", string(random)), message("large", string(random)+string(random[:150_000]))}))
	if res[0].Err != nil || forebay.CodeOf(res[1].Err) != forebay.CodeTooLarge || !strings.Contains(res[1].Err.Error(), "with encryption at most") {
		t.Errorf("%v, %v", res[0].Err, res[1].Err)
	}
	plain := open(opening(t, "k1"))
	defer plain.Close()
	send(t, plain, message("foreign", "plain"))

	got := map[string]string{}
	both := open(keys(t, "k2", "k1"))
	defer both.Close()
	for len(got) < 4 && t.Context().Err() == nil {
		for _, d := range must[[]forebay.Delivery](t)(both.Receive(t.Context(), engine.Receive{Queue: "q", Max: 10, Wait: time.Second})) {
			got[d.ID] = string(d.Payload)
			settle(t, both, forebay.Settlement{Receipt: d.Receipt, Queue: "q", Verdict: forebay.Ack})
		}
	}
	if got["a"] != secret || got["b"] != strings.Repeat(secret, 50_000) || got["foreign"] != "plain" || got["fits"] != string(random) {
		t.Errorf("received %d, a is %q", len(got), got["a"])
	}
	front.Close() // ends what still polls
	if st := must[sealed.Status](t)(both.Status(t.Context())); !st.Carried || st.Current != "k2" {
		t.Errorf("%+v", st)
	}
}

// maxPlainOverSQS is nearly as much as fits.
const maxPlainOverSQS = 750_000
