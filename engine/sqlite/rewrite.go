package sqlite

// A message never changes, but for the payload of a job that waits. Its record is
// then written anew in its place, so that its order and all that points to it stay.

// rewritten is a block whose data this transaction writes anew. Memory has it at
// once, so that what the transaction reads is what it wrote.
type rewritten struct {
	data    []byte
	recs    [][2]int32
	was     []byte
	wasRecs [][2]int32
}

// rewrite puts a new body in the place of message i of a block that is in memory.
func (t *tx) rewrite(b *block, i int, body []byte) {
	w := t.rewrites[b]
	if w == nil {
		w = &rewritten{was: b.data, wasRecs: b.recs}
		if t.rewrites == nil {
			t.rewrites = map[*block]*rewritten{}
		}
		t.rewrites[b] = w
		b.pins++
	}
	w.data = make([]byte, 1, len(b.data)+len(body)+recordHeader)
	w.data[0] = blockVersion
	w.recs = make([][2]int32, b.n)
	for k := range b.n {
		one := b.body(k)
		if k == i {
			one = body
		}
		if one == nil { // damaged, and put aside
			continue
		}
		w.data = appendRecord(w.data, k, one)
		w.recs[k] = [2]int32{int32(len(w.data) - len(one)), int32(len(w.data))}
	}
	t.l.blocks.swap(b, w.data, w.recs)
}

func (t *tx) writeRewrites() error {
	for b, w := range t.rewrites {
		err := t.rewriteBlock(b.key, w.data)
		if err == nil {
			err = t.writeFresh(b.key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) publishRewrites() {
	for b, w := range t.rewrites {
		q, settled := t.l.queueOf(b.key), b.settled.count()
		q.bytes -= b.remaining(settled)
		b.bytes = int64(len(w.data))
		q.bytes += b.remaining(settled)
		t.l.blocks.swap(b, w.data, w.recs)
		t.l.signer.rewrote(t.l, b.key)
		b.pins--
		t.l.blocks.release(b)
	}
	t.rewrites = nil
}

func (t *tx) undoRewrites() {
	for b, w := range t.rewrites {
		t.l.blocks.swap(b, w.was, w.wasRecs)
		b.pins--
		t.l.blocks.release(b)
	}
	t.rewrites = nil
}

// swap gives a block other data, if its data is in memory.
func (c *blocks) swap(b *block, data []byte, recs [][2]int32) {
	if b.data == nil {
		return
	}
	before := b.cost()
	b.data, b.recs = data, recs
	switch more := b.cost() - before; {
	case b.window:
		c.ahead += more
	case b.recent != nil:
		c.behind += more
	}
}
