package sqsapi_test

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/sqsapi"
)

// answer is what came back, as it is on the wire.
type answer struct {
	status int
	header http.Header
	body   string
}

// json asks in the JSON protocol.
func (s *served) json(t *testing.T, action, body string) answer {
	t.Helper()
	r, err := http.NewRequest("POST", s.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	return s.do(t, r)
}

// query asks in the Query protocol; the form is not encoded yet.
func (s *served) query(t *testing.T, path string, form ...string) answer {
	t.Helper()
	values := url.Values{}
	for _, pair := range form {
		name, value, _ := strings.Cut(pair, "=")
		values.Add(name, value)
	}
	r, err := http.NewRequest("POST", s.URL+path, strings.NewReader(values.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	return s.do(t, r)
}

func (s *served) do(t *testing.T, r *http.Request) answer {
	t.Helper()
	resp, err := s.Server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

var requestID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestJSONAnswersAreAsAWSGivesThem(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.json(t, "CreateQueue", `{"QueueName":"q","New":{"member":["of a newer model"]}}`)
	for _, c := range []struct {
		action, body string
		status       int
		want         string
		code         string // of the header that old clients read
	}{
		{"ReceiveMessage", `{"QueueUrl":"q"}`, 200, `{}`, ""},
		{"TagQueue", `{"QueueUrl":"http://anything/at/all/q","Tags":{"a":"b"}}`, 200, `{}`, ""},
		{"ListQueueTags", `{"QueueUrl":"q"}`, 200, `{"Tags":{"a":"b"}}`, ""},
		{"ListQueues", `{}`, 200, `{"QueueUrls":["` + s.URL + `/000000000000/q"]}`, ""},
		{"ListQueues", ``, 200, `{"QueueUrls":["` + s.URL + `/000000000000/q"]}`, ""},
		{"ListDeadLetterSourceQueues", `{"QueueUrl":"q"}`, 200, `{"queueUrls":[]}`, ""},
		{"GetQueueUrl", `{"QueueName":"none"}`, 400, `"__type":"com.amazonaws.sqs#QueueDoesNotExist"`, "AWS.SimpleQueueService.NonExistentQueue;Sender"},
		{"ReceiveMessage", `{"QueueUrl":"q","MaxNumberOfMessages":11}`, 400, `#InvalidParameterValueException"`, "InvalidParameterValue;Sender"},
		{"ReceiveMessage", `{"QueueUrl":"q","MaxNumberOfMessages":"1"}`, 400, `STRING_VALUE can not be converted to an Integer`, "SerializationException;Sender"},
		{"ReceiveMessage", `{"QueueUrl":"q","MaxNumberOfMessages":1e99}`, 400, `#SerializationException"`, "SerializationException;Sender"},
		{"ReceiveMessage", `{"QueueUrl":["q"]}`, 400, `START_ARRAY can not be converted to a String`, "SerializationException;Sender"},
		{"ReceiveMessage", `{"QueueUrl":"q"`, 400, `#SerializationException"`, "SerializationException;Sender"},
		{"ReceiveMessage", `{"QueueUrl":"q"}{}`, 400, `#SerializationException"`, "SerializationException;Sender"},
		{"ReceiveMessage", `[]`, 400, `#SerializationException"`, "SerializationException;Sender"},
		{"ReceiveMessage", `{"QueueUrl":null}`, 400, `#MissingRequiredParameterException"`, "MissingParameter;Sender"},
		{"ReceiveMessage", `null`, 400, `#MissingRequiredParameterException"`, "MissingParameter;Sender"},
		{"SendMessage", "{\"QueueUrl\":\"q\",\"MessageBody\":\"\xff\"}", 400, `#SerializationException"`, "SerializationException;Sender"},
		{"SendMessage", `{"QueueUrl":"q","MessageBody":"a","MessageAttributes":{"x":{"DataType":"Binary","BinaryValue":"!"}}}`, 400, `#SerializationException"`, "SerializationException;Sender"},
		{"DoMessage", `{}`, 400, `"__type":"com.amazonaws.sqs#InvalidAction"`, "InvalidAction;Sender"},
		{"", `{}`, 400, `#InvalidAction"`, "InvalidAction;Sender"},
		{"DeleteMessage", `{"QueueUrl":"q","ReceiptHandle":"garbage"}`, 404, `#ReceiptHandleIsInvalid"`, "ReceiptHandleIsInvalid;Sender"},
	} {
		a := s.json(t, c.action, c.body)
		exact := strings.HasPrefix(c.want, "{")
		if a.status != c.status || exact && a.body != c.want || !exact && !strings.Contains(a.body, c.want) {
			t.Errorf("%s %s: %d %s, not %d %s", c.action, c.body, a.status, a.body, c.status, c.want)
		}
		if got := a.header.Get("x-amzn-query-error"); got != c.code {
			t.Errorf("%s %s: the error header is %q, not %q", c.action, c.body, got, c.code)
		}
		if a.header.Get("Content-Type") != "application/x-amz-json-1.0" || !requestID.MatchString(a.header.Get("x-amzn-RequestId")) {
			t.Errorf("%s: headers %v", c.action, a.header)
		}
		if !json.Valid([]byte(a.body)) {
			t.Errorf("%s: %s is no JSON", c.action, a.body)
		}
	}
}

func TestQueryAnswersAreAsAWSGivesThem(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := s.query(t, "/", "Action=CreateQueue", "QueueName=q", "Attribute.1.Name=VisibilityTimeout", "Attribute.1.Value=7", "Version=2012-11-05")
	var created struct {
		XMLName   xml.Name `xml:"http://queue.amazonaws.com/doc/2012-11-05/ CreateQueueResponse"`
		URL       string   `xml:"CreateQueueResult>QueueUrl"`
		RequestID string   `xml:"ResponseMetadata>RequestId"`
	}
	if err := xml.Unmarshal([]byte(a.body), &created); err != nil || created.URL != s.URL+"/000000000000/q" {
		t.Fatalf("%s: %v", a.body, err)
	}
	if created.RequestID != a.header.Get("x-amzn-RequestId") || a.header.Get("Content-Type") != "text/xml" {
		t.Errorf("request %s, headers %v", created.RequestID, a.header)
	}
	for _, c := range []struct {
		path string
		form []string
		want string
	}{
		{"/000000000000/q", []string{"Action=ReceiveMessage"}, `<ReceiveMessageResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><ReceiveMessageResult></ReceiveMessageResult>`},
		{"/", []string{"Action=GetQueueAttributes", "QueueUrl=q", "AttributeName.1=VisibilityTimeout"}, `<Attribute><Name>VisibilityTimeout</Name><Value>7</Value></Attribute>`},
		{"/x/y/q/", []string{"Action=SetQueueAttributes", "Attribute.Name=VisibilityTimeout", "Attribute.Value=8"}, `<SetQueueAttributesResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><ResponseMetadata>`},
		{"/", []string{"Action=GetQueueAttributes", "QueueUrl=q", "AttributeName=VisibilityTimeout"}, `<Value>8</Value>`},
		{"/", []string{"Action=TagQueue", "QueueUrl=q", "Tag.1.Key=a", "Tag.1.Value=\"<&>'"}, `<TagQueueResponse`},
		{"/", []string{"Action=ListQueueTags", "QueueUrl=q"}, `<Tag><Key>a</Key><Value>&#34;&lt;&amp;&gt;&#39;</Value></Tag>`},
		{"/", []string{"Action=SendMessage", "QueueUrl=q", "MessageBody=a\r\n\"b\"", "Unknown.1=x", "a.b.c.d.e.f.g.h.i.j=deep"}, `<MD5OfMessageBody>`},
		{"/", []string{"Action=ReceiveMessage", "QueueUrl=q"}, `<Body>a&#xD;&#xA;&#34;b&#34;</Body>`},
	} {
		if a := s.query(t, c.path, c.form...); a.status != 200 || !strings.Contains(a.body, c.want) {
			t.Errorf("%s %q: %d %s has no %s", c.path, c.form, a.status, a.body, c.want)
		}
	}
	r, err := http.NewRequest("GET", s.URL+"/000000000000/q?Action=SendMessage&MessageBody=by%20GET", nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := s.do(t, r); a.status != 200 || !strings.Contains(a.body, "<SendMessageResult>") {
		t.Errorf("GET: %d %s", a.status, a.body)
	}
}

func TestQueryErrors(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.json(t, "CreateQueue", `{"QueueName":"q"}`)
	many := []string{"Action=ListQueues"}
	for range 5000 {
		many = append(many, "a=b")
	}
	for _, c := range []struct {
		form   []string
		status int
		code   string
	}{
		{nil, 400, "MissingAction"},
		{[]string{"Action=DoMessage"}, 400, "InvalidAction"},
		{[]string{"Action=SendMessage", "MessageBody=a"}, 400, "MissingParameter"},
		{[]string{"Action=SendMessage", "QueueUrl=none", "MessageBody=a"}, 400, "AWS.SimpleQueueService.NonExistentQueue"},
		{[]string{"Action=SendMessage", "QueueUrl=q", "MessageBody=a", "DelaySeconds=soon"}, 400, "InvalidParameterValue"},
		{[]string{"Action=SendMessage", "QueueUrl=q", "MessageBody=\xff"}, 400, "InvalidParameterValue"},
		{[]string{"Action=SendMessage", "QueueUrl=q", "MessageBody=a", "MessageAttribute.1.Value.DataType=String"}, 400, "MissingParameter"},
		{[]string{"Action=SendMessage", "QueueUrl=q", "MessageBody=a", "MessageAttribute.1.Name=x", "MessageAttribute.1.Value.BinaryValue=!"}, 400, "InvalidParameterValue"},
		{[]string{"Action=DeleteMessage", "QueueUrl=q", "ReceiptHandle=garbage"}, 404, "ReceiptHandleIsInvalid"},
		{many, 400, "MalformedQueryString"},
	} {
		a := s.query(t, "/", c.form...)
		var e struct {
			XMLName xml.Name `xml:"http://queue.amazonaws.com/doc/2012-11-05/ ErrorResponse"`
			Type    string   `xml:"Error>Type"`
			Code    string   `xml:"Error>Code"`
			Message string   `xml:"Error>Message"`
			Request string   `xml:"RequestId"`
		}
		if err := xml.Unmarshal([]byte(a.body), &e); err != nil {
			t.Errorf("%.200q: %v", c.form, err)
		}
		if a.status != c.status || e.Code != c.code || e.Type != "Sender" || e.Message == "" || !requestID.MatchString(e.Request) {
			t.Errorf("%.200q: %d %s", c.form, a.status, a.body)
		}
	}
}

func TestMethodsAndBodiesHaveBounds(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *sqsapi.Config) { c.MaxBody = 1000 })
	r, err := http.NewRequest("PUT", s.URL+"/?Action=ListQueues", nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := s.do(t, r); a.status != 400 || !strings.Contains(a.body, "InvalidAction") {
		t.Errorf("PUT: %d %s", a.status, a.body)
	}
	if a := s.json(t, "ListQueues", `{"x":"`+strings.Repeat("a", 1000)+`"}`); a.status != 413 || !strings.Contains(a.body, "RequestEntityTooLarge") {
		t.Errorf("announced: %d %s", a.status, a.body)
	}
	r, err = http.NewRequest("POST", s.URL, io.MultiReader(strings.NewReader(strings.Repeat("a", 1001)))) // of unknown length
	if err != nil {
		t.Fatal(err)
	}
	if a := s.do(t, r); a.status != 413 || !strings.Contains(a.body, "RequestEntityTooLarge") {
		t.Errorf("not announced: %d %s", a.status, a.body)
	}
}

// Who writes all of a body that is too large before it looks for an answer finds one. A
// server by itself passes over 256 KiB and closes the connection.
func TestTooLargeIsAnAnswerAndNoBrokenPipe(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *sqsapi.Config) { c.MaxBody = 4 << 20 })
	const size = 15 << 20
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AmazonSQS.ListQueues\r\nContent-Length: %d\r\n\r\n", size)
	if _, err := io.WriteString(conn, head+strings.Repeat("a", size)); err != nil {
		t.Fatalf("the body was not taken: %v", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%+v, %v", resp, err)
	}
}

// A body that does not come is given up; a wait that is longer than that is not.
func TestBodiesHaveADeadlineAndWaitsHaveNone(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *sqsapi.Config) { c.BodyTime = 20 * time.Millisecond })
	s.json(t, "CreateQueue", `{"QueueName":"q"}`)
	for header, status := range map[string]int{"": http.StatusRequestTimeout, "Origin: http://refused\r\n": http.StatusForbidden} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+header+"X-Amz-Target: AmazonSQS.ListQueues\r\nContent-Length: 9\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%q: status %d, not %d", header, resp.StatusCode, status)
		}
	}
	if a := s.json(t, "ReceiveMessage", `{"QueueUrl":"q","WaitTimeSeconds":1}`); a.status != 200 || a.body != "{}" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestLargeMessagesPass(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.json(t, "CreateQueue", `{"QueueName":"q"}`)
	body := strings.Repeat("\u4e16", 1<<20/3) // each three bytes, six as JSON may write it, nine as a form does
	escaped := strings.Repeat(`\u4e16`, 1<<20/3)
	if a := s.json(t, "SendMessage", `{"QueueUrl":"q","MessageBody":"`+escaped+`"}`); a.status != 200 {
		t.Errorf("JSON: %d %s", a.status, a.body)
	}
	if a := s.query(t, "/", "Action=SendMessage", "QueueUrl=q", "MessageBody="+body); a.status != 200 {
		t.Errorf("Query: %d %s", a.status, a.body)
	}
	if a := s.json(t, "ReceiveMessage", `{"QueueUrl":"q"}`); !strings.Contains(a.body, body) {
		t.Errorf("%d, %d bytes", a.status, len(a.body))
	}
}
