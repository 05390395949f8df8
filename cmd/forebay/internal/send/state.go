package send

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// statePath is the hidden file beside a file of events.
func statePath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".forebay-send")
}

// readState gives how far an earlier run came. A state that cannot be read is none:
// the ids keep what is sent again from being doubled.
func readState(path string) (Progress, bool) {
	var p Progress
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &p) != nil || p.Offset < 0 || p.Lines < 0 {
		return Progress{}, false
	}
	return p, true
}

// save notes how far the server has confirmed. A folder that cannot be written is
// no reason to stop: the ids hold.
func (s *sender) save() {
	if s.state == "" {
		return
	}
	b, err := json.Marshal(s.sum.Progress)
	tmp := s.state + ".new"
	if err == nil {
		err = os.WriteFile(tmp, b, 0o600)
	}
	if err == nil {
		err = os.Rename(tmp, s.state)
	}
	if err != nil {
		s.cfg.Logger.Warn("the place in the file cannot be noted; a later run begins at the start", "error", err)
		s.state = ""
	}
}
