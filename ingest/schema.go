package ingest

// Schemas checks payloads by event type.
type Schemas struct{}

func (s *Schemas) check(d *draft) *fault { return nil }
