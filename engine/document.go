package engine

import (
	"math"
	"time"

	"github.com/forebayhq/forebay"
)

// CheckDocument finds the first thing that is wrong with a document that is to be
// stored. Engines refuse by it, and so does whoever asks earlier.
func CheckDocument(d *Document) error {
	if err := CheckDocumentName(d.Collection, d.Key); err != nil {
		return err
	}
	if d.Rev < AnyRev {
		return invalid("rev", "the revision is %d; allowed are that of the stored document, 0 where there is none, and %d for any", d.Rev, AnyRev)
	}
	if n := len(d.Value); n > MaxDocumentBytes {
		e := invalid("value", "the value has %d bytes; at most %d are allowed", n, MaxDocumentBytes)
		e.Code = forebay.CodeTooLarge
		return e
	}
	if last := time.Unix(0, math.MaxInt64); d.Expires.After(last) {
		return invalid("expires", "the time is %s; at the latest %s is allowed", d.Expires.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckDocumentName finds what is wrong with the name of a document.
func CheckDocumentName(collection, key string) error {
	if err := CheckCollection(collection); err != nil {
		return err
	}
	if key == "" {
		return invalid("key", "the document has no key; each needs one")
	}
	return checkName("key", key, MaxDocumentKey)
}

// CheckCollection finds what is wrong with the name of a collection.
func CheckCollection(collection string) error {
	if collection == "" {
		return invalid("collection", "the collection has no name; each needs one")
	}
	return checkName("collection", collection, MaxCollectionBytes)
}
