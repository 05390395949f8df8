package keyring_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/forebayhq/forebay/keyring"
)

func Example() {
	dir, err := os.MkdirTemp("", "keys")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ring, err := keyring.Open(filepath.Join(dir, "keys.json"), keyring.Config{})
	if err != nil {
		panic(err)
	}
	defer ring.Close()

	key, _, err := ring.Add(keyring.Spec{Name: "ios", Secret: "a-public-write-key", DailyQuota: 1000})
	if err != nil {
		panic(err)
	}
	found, err := ring.Authenticate("a-public-write-key", keyring.ScopeIngest)
	fmt.Println(found.Name, err)
	_, err = ring.Spend(key.ID, 1001)
	fmt.Println(err != nil)

	if _, err := ring.Revoke(key.ID); err != nil {
		panic(err)
	}
	_, err = ring.Authenticate("a-public-write-key", keyring.ScopeIngest)
	fmt.Println(err != nil)
	// Output:
	// ios <nil>
	// true
	// true
}
