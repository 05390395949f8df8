//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
)

// batch is the same rows in the forms that the methods take.
type batch struct {
	events     []event.Event
	ids        [][16]byte
	deliveries []forebay.Delivery
}

// batchesOf makes rows with time-ordered ids and payloads of 180 bytes. All methods
// write the same ones: the table is emptied before each.
func batchesOf(rows, size int) []*batch {
	batches := make([]*batch, rows/size)
	for i := range batches {
		b := &batch{}
		for n := range size {
			id, now := uuid.Must(uuid.NewV7()), time.Now().UTC()
			e := event.Event{
				ID: id.String(), Type: "app_open", UserID: fmt.Sprintf("user-%d", n%1000), Source: "ios/native",
				ReceivedAt: now, OccurredAt: now, SentAt: now,
				Payload: fmt.Appendf(nil, `{"screen":"home","n":%d,"session":"0199a3f2-7c1e-7b51-9a07-6f5e2f1f8c11",`+
					`"device":{"os":"ios","version":"17.4","model":"iPhone15,2"},"duration":12.5,"tags":["a","b","c"]}`, n),
			}
			payload, err := e.Append(nil)
			if err != nil {
				panic("BUG: " + err.Error())
			}
			b.events, b.ids = append(b.events, e), append(b.ids, id)
			b.deliveries = append(b.deliveries, forebay.Delivery{Message: forebay.Message{ID: e.ID, Payload: payload}})
		}
		batches[i] = b
	}
	return batches
}
