package config

import (
	"strings"

	"github.com/forebayhq/forebay"
)

// namedGroup is a group whose members are named by the user: queues.<name>.*
type namedGroup struct {
	prefix  string
	what    string
	allowed string // names
	isName  func(string) bool
	table   func(name string) []*setting
}

var namedGroups = []*namedGroup{
	{prefix: "queues", what: "a queue", allowed: "1 to 80 of A-Z a-z 0-9 _ -", isName: isQueueName, table: queueTable},
	{prefix: "handlers", what: "a kind of job", allowed: "1 to 80 of A-Z a-z 0-9 _ -", isName: isQueueName, table: handlerTable},
	{prefix: "reports", what: "a report", allowed: "1 to 80 of A-Z a-z 0-9 _ -", isName: isQueueName, table: reportTable},
	{prefix: "rules", what: "a rule of alerts", allowed: "1 to 80 of A-Z a-z 0-9 _ -", isName: isQueueName, table: ruleTable},
	{prefix: "sqsQueues", what: "a queue", allowed: "1 to 80 of A-Z a-z 0-9 _ -", isName: isQueueName, table: sqsQueueTable},
	{prefix: "encryptionKeys", what: "a key", allowed: "1 to 80 of A-Z a-z 0-9 _ -", isName: isQueueName, table: encryptionKeyTable},
}

func groupOf(prefix string) *namedGroup {
	for _, g := range namedGroups {
		if g.prefix == prefix {
			return g
		}
	}
	return nil
}

// splitNamed splits "<prefix>.<name>.<field>".
func splitNamed(g *namedGroup, key string) (name, field string, ok bool) {
	rest, ok := strings.CutPrefix(key, g.prefix+".")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ".")
}

// queueKey splits "queues.<name>.<field>".
func queueKey(key string) (name, field string, ok bool) { return splitNamed(namedGroups[0], key) }

// isQueueName tells what a queue may be called here: as on SQS.
func isQueueName(name string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return name != "" && len(name) <= forebay.MaxQueueBytes && strings.Trim(name, allowed) == ""
}
