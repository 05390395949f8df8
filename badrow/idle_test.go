package badrow_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay/badrow"
)

// Rows leave by age even where nothing else happens, and Close leaves no goroutine
// behind (the bubble would not end).
func TestAgeWhileIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := badrow.Open(filepath.Join(t.TempDir(), "bad.db"), badrow.Config{MaxAge: 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, badrow.Row{At: time.Now(), Code: "x"})
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if st := stats(t, s); st.Rows != 1 {
			t.Errorf("after a day: %+v", st)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if st := stats(t, s); st.Rows != 0 || st.Gone[badrow.GoneAge] != 1 {
			t.Errorf("after more than a day: %+v", st)
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
