package sqsapi_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

// ask is a request straight into the handler, from an address of choice.
func (s *served) ask(t *testing.T, from string, key *accessKey, header map[string]string) answer {
	const body = "Action=ListQueues"
	r := httptest.NewRequest("POST", "http://sqs.test/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.RemoteAddr = from
	for name, value := range header {
		r.Header.Set(name, value)
	}
	if key != nil {
		key.sign(t, r, body)
	}
	w := httptest.NewRecorder()
	s.front.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

func TestUnsignedRequestsComeFromThisMachineOnly(t *testing.T) {
	t.Parallel()
	const here, there = "127.0.0.1:1234", "192.0.2.1:1234"
	s := serve(t, nil)
	dummy := &accessKey{"test", "test"}
	check := func(name string, a answer, code string) {
		t.Helper()
		if status := 200; code == "" && a.status != status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if code != "" && (a.status != 403 || !strings.Contains(a.body, "<Code>"+code+"</Code>")) {
			t.Errorf("%s: %d %s, not %s", name, a.status, a.body, code)
		}
	}
	check("local", s.ask(t, here, nil, nil), "")
	check("local, IPv6", s.ask(t, "[::1]:1", nil, nil), "")
	check("local, mapped", s.ask(t, "[::ffff:127.0.0.1]:1", nil, nil), "")
	check("local, dummy key", s.ask(t, here, dummy, nil), "")
	check("remote", s.ask(t, there, nil, nil), sign.Missing)
	check("remote, dummy key", s.ask(t, there, dummy, nil), sign.Missing)
	check("no address", s.ask(t, "@", nil, nil), sign.Missing)
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "Via", "X-Real-IP"} {
		check(name, s.ask(t, here, nil, map[string]string{name: "192.0.2.1"}), sign.Missing)
		check(name+", dummy key", s.ask(t, here, dummy, map[string]string{name: "192.0.2.1"}), sign.Missing)
	}
	check("web page", s.ask(t, here, nil, map[string]string{"Origin": "https://evil.example"}), sign.Missing)
	check("image of a web page", s.ask(t, here, nil, map[string]string{"Sec-Fetch-Site": "cross-site"}), sign.Missing)
	check("typed into a browser", s.ask(t, here, nil, map[string]string{"Sec-Fetch-Site": "none"}), "")

	key := s.withKey(t)
	check("local, with keys there", s.ask(t, here, nil, nil), sign.Missing) // a proxy here that adds no header looks the same
	check("local, dummy key, with keys there", s.ask(t, here, dummy, nil), sign.Unknown)
	check("remote, signed", s.ask(t, there, &key, nil), "")
	check("web page, signed", s.ask(t, there, &key, map[string]string{"Origin": "https://app.example"}), "")
	check("wrong secret", s.ask(t, here, &accessKey{key.id, "x"}, nil), sign.Mismatch)
	if _, err := s.keys.Revoke(key.id); err != nil {
		t.Fatal(err)
	}
	check("revoked", s.ask(t, here, &key, nil), sign.Unknown)
	check("local, dummy key, after all keys ended", s.ask(t, here, dummy, nil), sign.Unknown)
}

func TestSignaturesAreNeededWhereNotSaidOtherwise(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *sqsapi.Config) { c.Unsigned = false })
	for name, a := range map[string]answer{
		"unsigned":  s.ask(t, "127.0.0.1:1", nil, nil),
		"dummy key": s.ask(t, "127.0.0.1:1", &accessKey{"test", "test"}, nil),
	} {
		if a.status != 403 || !strings.Contains(a.body, "<Code>") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	key := s.withKey(t)
	if a := s.ask(t, "192.0.2.1:1", &key, nil); a.status != 200 {
		t.Errorf("signed: %d %s", a.status, a.body)
	}
	none := serve(t, func(c *sqsapi.Config) { c.Unsigned, c.Keys = false, nil })
	if a := none.ask(t, "127.0.0.1:1", &key, nil); a.status != 403 {
		t.Errorf("without keys: %d %s", a.status, a.body)
	}
}

// The body is not read for who has no key.
func TestSignaturesAreJudgedBeforeTheBody(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *sqsapi.Config) { c.Unsigned = false })
	r := httptest.NewRequest("POST", "http://sqs.test/", unread{t})
	(&accessKey{"nobody", "x"}).sign(t, r, "")
	w := httptest.NewRecorder()
	s.front.ServeHTTP(w, r)
	if w.Code != 403 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, fmt.Errorf("no body")
}

// What each action needs: any of the rights, on the queue that it names.
var needed = map[string]struct{ rights, body string }{
	"AddPermission":                {"manage", `{"QueueUrl":"a"}`},
	"CancelMessageMoveTask":        {"manage", `{"TaskHandle":"` + base64.StdEncoding.EncodeToString([]byte(`{"taskId":"t","sourceArn":"arn:aws:sqs:us-east-1:000000000000:a"}`)) + `"}`},
	"ChangeMessageVisibility":      {"receive", `{"QueueUrl":"a"}`},
	"ChangeMessageVisibilityBatch": {"receive", `{"QueueUrl":"a"}`},
	"CreateQueue":                  {"manage", `{"QueueName":"a"}`},
	"DeleteMessage":                {"receive", `{"QueueUrl":"a"}`},
	"DeleteMessageBatch":           {"receive", `{"QueueUrl":"a"}`},
	"DeleteQueue":                  {"manage", `{"QueueUrl":"http://x/000000000000/a"}`},
	"GetQueueAttributes":           {"send receive manage", `{"QueueUrl":"a"}`},
	"GetQueueUrl":                  {"send receive manage", `{"QueueName":"a"}`},
	"ListDeadLetterSourceQueues":   {"manage", `{"QueueUrl":"a"}`},
	"ListMessageMoveTasks":         {"manage", `{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:a"}`},
	"ListQueueTags":                {"send receive manage", `{"QueueUrl":"a"}`},
	"PurgeQueue":                   {"manage", `{"QueueUrl":"a"}`},
	"ReceiveMessage":               {"receive", `{"QueueUrl":"a"}`},
	"RemovePermission":             {"manage", `{"QueueUrl":"a"}`},
	"SendMessage":                  {"send", `{"QueueUrl":"a","MessageBody":"x"}`},
	"SendMessageBatch":             {"send", `{"QueueUrl":"a"}`},
	"SetQueueAttributes":           {"manage", `{"QueueUrl":"a"}`},
	"StartMessageMoveTask":         {"manage", `{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:a"}`},
	"TagQueue":                     {"manage", `{"QueueUrl":"a"}`},
	"UntagQueue":                   {"manage", `{"QueueUrl":"a"}`},
}

func TestRightsOfKeys(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	denied := func(key accessKey, action, body string) (bool, string) {
		r, err := http.NewRequest("POST", s.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
		key.sign(t, r, body)
		a := s.do(t, r)
		refused := strings.Contains(a.body, "#AccessDenied\"")
		if refused && (a.status != 403 || a.header.Get("x-amzn-query-error") != "AccessDenied;Sender") {
			t.Errorf("%s: %d %s", action, a.status, a.body)
		}
		return refused, a.body
	}
	s.json(t, "CreateQueue", `{"QueueName":"a"}`)
	for _, right := range []string{"send", "receive", "manage"} {
		key := s.withKey(t, sign.Right{Queues: "a", Actions: []string{right}})
		other := s.withKey(t, sign.Right{Queues: "b*", Actions: []string{"send", "receive", "manage"}})
		for action, n := range needed {
			allowed := slices.Contains(strings.Fields(n.rights), right)
			if action == "DeleteQueue" && allowed {
				continue // it would take the queue away
			}
			if refused, text := denied(key, action, n.body); refused == allowed {
				t.Errorf("%s with the right %s: %s", action, right, text)
			} else if refused && !(strings.Contains(text, action) && strings.Contains(text, strings.Fields(n.rights)[0])) {
				t.Errorf("%s: %s does not say what is needed", action, text)
			}
			if refused, text := denied(other, action, n.body); !refused {
				t.Errorf("%s on a queue of others: %s", action, text)
			}
		}
	}
	both := s.withKey(t, sign.Right{Queues: "a", Actions: []string{"manage"}})
	move := `{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:a","DestinationArn":"arn:aws:sqs:us-east-1:000000000000:b"}`
	if refused, text := denied(both, "StartMessageMoveTask", move); !refused {
		t.Errorf("a move to a queue of others: %s", text)
	}
}

func TestListsShowWhatTheKeyMayUse(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, name := range []string{"a1", "a2", "b1"} {
		s.json(t, "CreateQueue", `{"QueueName":"`+name+`"}`)
	}
	key := s.withKey(t, sign.Right{Queues: "a*", Actions: []string{"send"}})
	a := s.ask(t, "192.0.2.1:1", &key, nil)
	if !strings.Contains(a.body, "/a1<") || !strings.Contains(a.body, "/a2<") || strings.Contains(a.body, "/b1<") {
		t.Errorf("listed %s", a.body)
	}
}
