package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/sink/sqlite"
)

func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s, err := sqlite.Open(filepath.Join(b.TempDir(), "events.db"), fast())
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			rows := 0
			for b.Loop() {
				b.StopTimer()
				ds := benchBatch(b, size)
				b.StartTimer()
				if err := errors.Join(s.HandleBatch(b.Context(), ds)...); err != nil {
					b.Fatal(err)
				}
				rows += size
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// benchBatch has time-ordered ids and payloads of 180 bytes.
func benchBatch(b *testing.B, size int) []forebay.Delivery {
	events := samples(0, size)
	for i := range events {
		events[i].ID = uuid.Must(uuid.NewV7()).String()
		events[i].OccurredAt, events[i].SentAt = events[i].ReceivedAt, events[i].ReceivedAt
		events[i].Payload = []byte(fmt.Sprintf(`{"screen":"home","n":%d,"session":"0199a3f2-7c1e-7b51-9a07-6f5e2f1f8c11","device":{"os":"ios","version":"17.4","model":"iPhone15,2"},"duration":12.5,"tags":["a","b","c"]}`, i))
	}
	return deliveries(b, events...)
}
