package sqsapi

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

// What is written by hand reads as what the encoder writes, with and without everything
// that may be left out.
func TestHotAnswersAreTheSame(t *testing.T) {
	t.Parallel()
	empty, odd := "", "\x00\x1f\"\\\r\n\t</b>&\u2028\u00e9\U0001f600"
	full := queue.Message{MessageId: "id", ReceiptHandle: odd, MD5OfBody: "md5", Body: odd, MD5OfAttributes: "more",
		Attributes: map[string]string{"SentTimestamp": "1", odd: odd},
		MessageAttributes: map[string]queue.Attribute{
			"text": {DataType: "String", StringValue: &odd}, odd: {DataType: "Binary.x", BinaryValue: []byte{0, 1, 0xff, 0xfe}}, "none": {DataType: "Number"}, "empty": {DataType: "String", StringValue: &empty},
		}}
	sent := queue.SendOutput{ID: odd, MessageId: "m", MD5OfBody: "b", MD5OfAttributes: "a", MD5OfSystem: "s", SequenceNumber: "1"}
	for _, out := range []any{
		&queue.ReceiveOutput{}, &queue.ReceiveOutput{Messages: []queue.Message{{}, full, full}},
		&queue.HandleBatchOutput{}, &queue.HandleBatchOutput{Successful: []queue.Done{{ID: odd}, {}}},
		&queue.HandleBatchOutput{Successful: []queue.Done{{ID: "a"}}, Failed: []queue.Failed{{ID: "b", Code: "c"}}},
		&queue.SendBatchOutput{}, &queue.SendBatchOutput{Successful: []queue.SendOutput{sent, {}}},
		&queue.SendBatchOutput{Failed: []queue.Failed{{ID: "b", Code: "c", SenderFault: true, Message: odd}}},
	} {
		got, err := (&jsonProtocol{}).encode(nil, nil, out, "")
		if err != nil {
			t.Fatalf("%+v: %v", out, err)
		}
		want, err := encodeCold(nil, out)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := parsed(t, got), parsed(t, want); !reflect.DeepEqual(a, b) {
			t.Errorf("%s\nis not\n%s", got, want)
		}
	}
	broken := &queue.ReceiveOutput{Messages: []queue.Message{{Body: "\xff"}}}
	if b, err := (&jsonProtocol{}).encode(nil, nil, broken, ""); err == nil {
		t.Errorf("what is no UTF-8 was written: %q", b)
	}
}

func parsed(t *testing.T, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}
