package schema_test

import (
	"testing"

	"github.com/forebayhq/forebay/internal/schema"
)

// What an ordinary check costs.
func BenchmarkCheck(b *testing.B) {
	s, err := schema.Compile([]byte(mail))
	if err != nil {
		b.Fatal(err)
	}
	data := []byte(`{"to":"ann@example.com","plan":"pro","tries":3,"parts":[{"name":"a"},{"name":"b"},{"name":"c"}],"when":{"at":"noon"}}`)
	for b.Loop() {
		if bad, _ := s.Check(data); len(bad) > 0 {
			b.Fatal(bad)
		}
	}
}
