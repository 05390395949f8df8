package sqsapi_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// Whatever a client sends, the answer is one that clients can read, never says that
// the server is at fault, and nothing panics. Long polls are closed: they answer at once.

func fuzzed(f *testing.F) *served {
	f.Helper()
	s := serve(f, nil)
	s.front.Close()
	return s
}

func (s *served) throw(t *testing.T, target, action, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("POST", "http://sqs.test/", strings.NewReader(body))
	r.URL.RawQuery = target
	r.RemoteAddr = "127.0.0.1:1"
	if action != "" {
		r.Header["X-Amz-Target"] = []string{action}
	} else {
		r.Header["Content-Type"] = []string{"application/x-www-form-urlencoded"}
	}
	w := httptest.NewRecorder()
	s.front.ServeHTTP(w, r)
	if w.Code >= 500 {
		t.Errorf("%s %q: %d %s", action, body, w.Code, w.Body)
	}
	if refused := w.Code != http.StatusOK; refused != (w.Header().Get("x-amzn-query-error") != "") {
		t.Errorf("%s %q: %d with the error header %q", action, body, w.Code, w.Header().Get("x-amzn-query-error"))
	}
	return w
}

func FuzzJSON(f *testing.F) {
	s := fuzzed(f)
	for action, n := range needed {
		f.Add(action, n.body)
	}
	f.Add("CreateQueue", `{"QueueName":"q.fifo","Attributes":{"FifoQueue":"true","DelaySeconds":"-0","RedrivePolicy":"{\"maxReceiveCount\":1e9}"},"tags":{"":""}}`)
	f.Add("SendMessageBatch", `{"QueueUrl":"a","Entries":[null,{"Id":"1","MessageBody":"\u0000\ufffe","DelaySeconds":-1},{"Id":"2","MessageBody":"x","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"AA=="}}}]}`)
	f.Add("ReceiveMessage", `{"QueueUrl":"//","MaxNumberOfMessages":-9223372036854775808,"WaitTimeSeconds":20,"AttributeNames":["All",""]}`)
	f.Add("ChangeMessageVisibility", `{"QueueUrl":"a","ReceiptHandle":"AAAA","VisibilityTimeout":9223372036854775807}`)
	f.Add("StartMessageMoveTask", `{"SourceArn":":::::","DestinationArn":":"}`)
	f.Add("ListQueues", `{"MaxResults":0,"NextToken":"\ud800"}`)
	f.Add("SetQueueAttributes", `{"QueueUrl":"a","Attributes":{"Policy":"{","RedriveAllowPolicy":"[]","MessageRetentionPeriod":"1e3"}}`)
	f.Add("DeleteMessage", strings.Repeat(`{"QueueUrl":`, 20000))
	f.Fuzz(func(t *testing.T, action, body string) {
		w := s.throw(t, "", "AmazonSQS."+action, body)
		var any map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &any); err != nil {
			t.Errorf("%s %q: %s: %v", action, body, w.Body, err)
		}
		if w.Code != http.StatusOK && (any["__type"] == nil || any["message"] == "") {
			t.Errorf("%s %q: %s", action, body, w.Body)
		}
	})
}

func FuzzQuery(f *testing.F) {
	s := fuzzed(f)
	for action := range needed {
		f.Add("", "Action="+action+"&QueueUrl=a&QueueName=a&Version=2012-11-05")
	}
	f.Add("Action=SendMessage", "QueueUrl=a&MessageBody=%0d%00&MessageAttribute.1.Name=x&MessageAttribute.1.Value.DataType=String&MessageAttribute.1.Value.StringValue=y")
	f.Add("", "Action=SendMessageBatch&QueueUrl=a&SendMessageBatchRequestEntry.1.Id=1&SendMessageBatchRequestEntry.1.MessageBody=x&SendMessageBatchRequestEntry.-99999999999999999999.Id=1")
	f.Add("", "Action=SendMessageBatch&QueueUrl=a&SendMessageBatchRequestEntry=x&SendMessageBatchRequestEntry.0x1.Id&....&=&&%")
	f.Add("Action=CreateQueue&QueueName=b", "Attribute.Name=DelaySeconds&Attribute.Value=1&Attribute.1.Name=&Tag.2.Key=k&Tag.1.Key=")
	f.Add("", "Action=ReceiveMessage&QueueUrl=a&MaxNumberOfMessages=99999999999999999999&AttributeName=All")
	f.Add("", "Action=ChangeMessageVisibilityBatch&QueueUrl=a&ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout=1.5")
	f.Fuzz(func(t *testing.T, query, body string) {
		w := s.throw(t, query, "", body)
		d, names := xml.NewDecoder(w.Body), []string{}
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%q %q: %v", query, body, err)
			}
			if e, ok := token.(xml.StartElement); ok {
				names = append(names, e.Name.Local)
			}
		}
		if len(names) == 0 || !slices.Contains(names, "RequestId") || (w.Code != http.StatusOK) != (names[0] == "ErrorResponse") {
			t.Errorf("%q %q: %d with %v", query, body, w.Code, names)
		}
	})
}
