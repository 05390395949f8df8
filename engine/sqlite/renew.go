package sqlite

import (
	"errors"
	"math/rand/v2"

	"zombiezen.com/go/sqlite"
)

// Renew makes the copy of a store at path a store of its own. What the original has given
// out since the copy was made means nothing in it: receipts are void, and places in the
// history are those of another store. Without that, a receipt of the original could settle
// a message of the copy that was handed out to somebody else.
//
// No engine may have it open. A store of a newer version is refused and left as it is.
func Renew(path string) (err error) {
	if err := checkHeader(path); err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return storeError(err)
	}
	defer func() {
		if cerr := conn.Close(); cerr != nil && err == nil {
			err = storeError(cerr)
		}
	}()
	// Beyond all starts that the original may count until anybody notices.
	starts := int64(1<<12) + rand.Int64N(1<<20)
	d := db{conn}
	err = errors.Join(d.exec("BEGIN IMMEDIATE"),
		d.exec("UPDATE meta SET value = value + ?1 WHERE name = 'epoch'", starts),
		d.exec("UPDATE history_state SET epoch = ?1", rand.Int64()))
	if err == nil {
		err = d.exec("COMMIT")
	}
	return err // what is not committed goes with the connection
}
