package keyring_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/keyring"
)

// TestKill kills a process that adds and revokes keys, again and again. Each key
// that it told is there with its state, and the file is whole each time.
func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	told := map[string]bool{} // id → live
	for round := range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKillChild$")
		cmd.Env = append(os.Environ(), "KEYRING_KILL="+path, fmt.Sprint("KEYRING_ROUND=", round))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); {
			verb, id, ok := strings.Cut(lines.Text(), " ")
			if !ok || (verb != "added" && verb != "revoked") {
				continue // what the test binary says itself
			}
			told[id] = verb == "added"
			if n++; n == 10+3*round {
				cmd.Process.Kill()
			}
		}
		cmd.Wait() // its error is the kill
		have := map[string]bool{}
		for _, k := range open(t, path, keyring.Config{}).List() {
			have[k.ID] = k.Live()
		}
		for id, live := range told {
			// A revocation may have been stored and not told.
			if got, there := have[id]; !there || got && !live {
				t.Errorf("round %d: the key %s was told as live: %v, and is there: %v, live: %v", round, id, live, there, got)
			}
		}
	}
	if len(told) < 20 {
		t.Errorf("only %d keys were told", len(told))
	}
}

// TestKillChild is the process that TestKill kills; it does nothing otherwise.
func TestKillChild(t *testing.T) {
	path := os.Getenv("KEYRING_KILL")
	if path == "" {
		return
	}
	r := open(t, path, keyring.Config{})
	for i := range 1000 {
		k, _ := add(t, r, keyring.Spec{Name: fmt.Sprint(os.Getenv("KEYRING_ROUND"), "-", i)})
		fmt.Println("added", k.ID)
		if i%3 == 0 {
			if _, err := r.Revoke(k.ID); err != nil {
				t.Fatal(err)
			}
			fmt.Println("revoked", k.ID)
		}
	}
}
