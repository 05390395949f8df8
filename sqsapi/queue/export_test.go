package queue

// LimitInFlight lowers the bound of messages in flight of a standard queue.
func (s *Service) LimitInFlight(n int64) { s.limits.inFlight = n }
