package postgres

import (
	"strconv"
	"strings"

	"github.com/forebayhq/forebay"
)

// A receipt is the number of the message, that of its hand-out and that of its queue, and
// says whether the queue is to be locked when it is settled.
func receiptOf(it *item) forebay.Receipt {
	mark := "p"
	if it.chain != "" || it.key != "" {
		mark = "s"
	}
	return forebay.Receipt(strconv.FormatInt(it.seq, 36) + "." + strconv.FormatInt(it.token, 36) + "." + strconv.FormatInt(int64(it.queue), 36) + "." + mark)
}

type receipt struct {
	seq, token int64
	queue      int32
	special    bool
}

func readReceipt(r forebay.Receipt) (out receipt, ok bool) {
	parts := strings.Split(string(r), ".")
	if len(parts) != 4 || len(r) > 64 {
		return out, false
	}
	var queue int64
	for i, to := range []*int64{&out.seq, &out.token, &queue} {
		n, err := strconv.ParseInt(parts[i], 36, 64)
		if err != nil || n <= 0 {
			return out, false
		}
		*to = n
	}
	out.queue, out.special = int32(queue), parts[3] == "s"
	return out, queue == int64(out.queue)
}

func lost(r forebay.Receipt) error {
	return fail(forebay.CodeLeaseLost, "the receipt %.70q is void: settled, expired or handed to another", string(r))
}
