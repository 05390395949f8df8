package queue

import (
	"strings"
)

// nameOf finds the name of a queue in its URL, or in a bare name.
func nameOf(url string) string {
	url = strings.TrimRight(url, "/")
	return url[strings.LastIndexByte(url, '/')+1:]
}

// nameOfARN finds the name in the ARN of a queue; empty: it is none.
func nameOfARN(arn string) string {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != "sqs" || checkName(parts[5]) != nil {
		return ""
	}
	return parts[5]
}

func (s *Service) arn(name string) string {
	return "arn:aws:sqs:" + s.cfg.Region + ":" + s.cfg.Account + ":" + name
}

// ours finds the name in an ARN of a queue of this account and region; empty: it is none.
func (s *Service) ours(arn string) string {
	if name := nameOfARN(arn); name != "" && arn == s.arn(name) {
		return name
	}
	return ""
}

const fifoEnd = ".fifo"

func isFifo(name string) bool { return strings.HasSuffix(name, fifoEnd) }

func checkName(name string) error {
	stem := strings.TrimSuffix(name, fifoEnd)
	if stem == "" || len(name) > 80 {
		return badName()
	}
	for i := range len(stem) {
		if c := stem[i]; !isWord(c) && c != '-' && c != '_' {
			return badName()
		}
	}
	return nil
}

func badName() error {
	return invalidValue("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length. A name may end in .fifo where FifoQueue is true.")
}

func isWord(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }

// invalidValue is the refusal that AWS gives for most things that are wrong.
func invalidValue(format string, args ...any) *Fault {
	return fault("InvalidParameterValueException", format, args...)
}

// badValue refuses one parameter.
func badValue(parameter string, value any, reason string) *Fault {
	return invalidValue("Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

func missing(parameter string) *Fault {
	return fault("MissingRequiredParameterException", "The request must contain the parameter %s.", parameter)
}

func noQueue() *Fault { return fault("QueueDoesNotExist", "The specified queue does not exist.") }
