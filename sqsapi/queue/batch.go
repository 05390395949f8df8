package queue

import "strconv"

func itoa(n int) string { return strconv.Itoa(n) }

// checkEntries looks at the entries of a batch as a whole: their number and ids.
func (s *Service) checkEntries(kind string, n int, id func(int) string) error {
	if n == 0 {
		return fault("EmptyBatchRequest", "There should be at least one %s in the request.", kind)
	}
	if n > s.limits.entries {
		return fault("TooManyEntriesInBatchRequest", "Maximum number of entries per request are %d. You have sent %d.", s.limits.entries, n)
	}
	seen := make(map[string]struct{}, n)
	for i := range n {
		if !soundID(id(i)) {
			return fault("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if seen[id(i)] = struct{}{}; len(seen) <= i {
			return fault("BatchEntryIdsNotDistinct", "Id %s repeated.", id(i))
		}
	}
	return nil
}

func soundID(id string) bool {
	for i := range len(id) {
		if c := id[i]; !isWord(c) && c != '-' && c != '_' {
			return false
		}
	}
	return id != "" && len(id) <= 80
}

// failedEntry is what a batch says of an entry that was not done.
func failedEntry(id string, err error) Failed {
	f, is := err.(*Fault)
	if !is { // an ended context: the entry may or may not have been done
		f = fault("ServiceUnavailable", "%s", err)
	}
	code, _, sender := f.Describe()
	return Failed{ID: id, SenderFault: sender, Code: code, Message: f.Message}
}
