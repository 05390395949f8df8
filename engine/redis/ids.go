package redis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forebayhq/forebay"
)

// reserved are names of BullMQ's own keys: a job of such an id would be one of them.
var reserved = []string{
	"id", "wait", "paused", "active", "prioritized", "pc", "delayed", "waiting-children", "completed", "failed", "stalled",
	"stalled-check", "limiter", "meta", "marker", "events", "repeat", "fb",
}

// storedID is the id of a message as BullMQ can have it: no colon, no name of a key, no
// whole number (those are BullMQ's own). What is not allowed is written as %XX. It can
// be undone for every id.
func storedID(id string) string {
	first := slices.Contains(reserved, id) || strings.Trim(id, "0123456789") == ""
	if !first && !strings.ContainsAny(id, ":%") {
		return id
	}
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; c == ':' || c == '%' || first && i == 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func messageID(stored string) string {
	if !strings.Contains(stored, "%") {
		return stored
	}
	var b strings.Builder
	for i := 0; i < len(stored); i++ {
		var c byte
		if stored[i] == '%' && i+2 < len(stored) {
			if _, err := fmt.Sscanf(stored[i+1:i+3], "%02X", &c); err == nil {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(stored[i])
	}
	return b.String()
}

// A job that a Node client added has an id of its queue only, so the message's is
// <queue>:<id>.
func foreignID(queue, stored string) string { return queue + ":" + stored }

// idArgs are the arguments by which a script finds the job of an id.
func idArgs(id string) []any {
	queue, stored, _ := strings.Cut(id, ":")
	if stored == "" {
		queue = ""
	}
	return []any{storedID(id), queue, stored}
}

// receipt names a delivery: its token, queue and stored id.
func receipt(token, queue, stored string) forebay.Receipt {
	return forebay.Receipt(token + "|" + queue + "|" + stored)
}

// plainMark is in the tokens of what lua/plain/receive.lua handed out.
const plainMark = "+"

func isPlain(token string) bool { return strings.Contains(token, plainMark) }

func readReceipt(r forebay.Receipt) (token, queue, stored string, ok bool) {
	token, rest, ok := strings.Cut(string(r), "|")
	if !ok {
		return "", "", "", false
	}
	queue, stored, ok = strings.Cut(rest, "|")
	return token, queue, stored, ok && token != "" && stored != ""
}

func lost(r forebay.Receipt) error {
	return fail(forebay.CodeLeaseLost, "receipt %q is void: it was settled, has expired, or its message is with another", cut(string(r), 80))
}

func cut(s string, most int) string { return s[:min(len(s), most)] }
