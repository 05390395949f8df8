package sqlite

import (
	"container/list"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// lane is the messages of one queue and level, in the order in which they were
// sent. A cursor runs over its blocks; window holds the next of them. Blocks
// between last and tail are in the store only.
type lane struct {
	window []*block
	head   int   // the next message in window[0]
	last   int64 // key of the last block that was in the window
	tail   int64 // key of the newest block
	nextAt int64 // nothing beyond last was sent before; 0: nothing is known
	gaps   bool  // what lies in window was taken in part, out of the order of the cursor
	rested int64 // key of the block that head belongs to while it is out of the window
}

// Bounds of the blocks whose data is kept in memory, over all queues.
const (
	windowBytes = 16 << 20 // ahead of the cursors
	recentBytes = 8 << 20  // behind them, for messages that come again
)

// push adds a block that was just written.
func (n *lane) push(l *loop, b *block) {
	if n.last == n.tail {
		n.nextAt = b.sentAt
		if l.blocks.ahead+b.cost() <= windowBytes {
			n.enter(l, b)
		}
	}
	n.tail = b.key
}

func (n *lane) enter(l *loop, b *block) {
	n.window = append(n.window, b)
	n.last = b.key
	l.blocks.enter(b)
}

// rest takes the blocks of a tenant that has had its turn out of memory, where that
// is needed for others. They are read again when its turn comes.
func (tn *tenant) rest(l *loop) {
	if l.blocks.ahead <= windowBytes {
		return
	}
	for _, n := range tn.lanes {
		if n == nil || len(n.window) == 0 || n.gaps {
			continue
		}
		n.rested, n.nextAt = n.window[0].key, n.window[0].sentAt
		n.last = n.rested - 1
		for _, b := range n.window {
			l.blocks.pass(b)
		}
		n.window = nil
	}
}

// passed tells whether the cursor of its lane has passed a message.
func (tn *tenant) passed(key int64, idx int) bool {
	n := tn.lane(key)
	at := n.rested
	if len(n.window) > 0 {
		at = n.window[0].key
	}
	if at == 0 {
		return key <= n.last
	}
	return key < at || key == at && idx < n.head
}

// inWindow tells whether the cursor's next message is in memory.
func (n *lane) inWindow() bool {
	head := n.head
	for _, b := range n.window {
		for ; head < b.n; head++ {
			if !b.skip.has(head) && !b.settled.has(head) {
				return true
			}
		}
		head = 0
	}
	return false
}

// peek gives the cursor's next message, and loads its block when needed.
func (n *lane) peek(l *loop) (*block, int, error) {
	for {
		if len(n.window) == 0 {
			n.gaps = false
			if n.last >= n.tail {
				return nil, 0, nil
			}
			if err := n.load(l); err != nil {
				return nil, 0, err
			}
			continue
		}
		b := n.window[0]
		for ; n.head < b.n; n.head++ {
			if !b.skip.has(n.head) && !b.settled.has(n.head) {
				return b, n.head, nil
			}
		}
		n.window[0] = nil
		n.window = n.window[1:]
		n.head = 0
		l.blocks.pass(b)
	}
}

// load reads the next block of the lane.
func (n *lane) load(l *loop) error {
	var key int64
	err := l.db.each("SELECT key FROM block WHERE key > ? AND key <= ? ORDER BY key LIMIT 1", func(s *sqlite.Stmt) error {
		key = s.ColumnInt64(0)
		return nil
	}, n.last, n.tail)
	if err != nil {
		return err
	}
	if key == 0 {
		n.last = n.tail
		return nil
	}
	b, err := l.readable(key)
	if err != nil {
		return err
	}
	if b == nil { // settled while we were not looking, or unreadable
		n.last = key
		return nil
	}
	if n.rested != key {
		n.head = 0
	}
	n.rested, n.nextAt = 0, b.sentAt
	n.enter(l, b)
	return nil
}

// blocks holds the blocks in use, and bounds the bytes of their data.
type blocks struct {
	byKey  map[int64]*block
	ahead  int       // bytes in windows
	behind int       // bytes in recent
	recent list.List // of *block, behind the cursors, the one to leave first in front
}

// cost is what a block takes in memory, about.
func (b *block) cost() int { return len(b.data) + 8*len(b.recs) + 512 }

// enter puts a block into its lane's window.
func (c *blocks) enter(b *block) {
	c.uncache(b)
	b.window = true
	c.byKey[b.key] = b
	c.ahead += b.cost()
}

// pass moves a block from its lane's window to the cache.
func (c *blocks) pass(b *block) {
	b.window = false
	c.ahead -= b.cost()
	c.cache(b)
}

// cache keeps a block's data until newer ones need the room.
func (c *blocks) cache(b *block) {
	c.byKey[b.key] = b
	b.recent = c.recent.PushBack(b)
	c.behind += b.cost()
	c.release(b)
	for c.behind > recentBytes && c.recent.Len() > 1 {
		c.drop(c.recent.Front().Value.(*block))
	}
}

func (c *blocks) uncache(b *block) {
	if b.recent != nil {
		c.recent.Remove(b.recent)
		c.behind -= b.cost()
		b.recent = nil
	}
}

// drop takes a block out of the cache, and its data out of memory.
func (c *blocks) drop(b *block) {
	c.uncache(b)
	b.data, b.recs = nil, nil
	c.release(b)
}

// release forgets a block that nobody uses.
func (c *blocks) release(b *block) {
	switch {
	case b.window || b.pins > 0:
	case b.recent != nil && b.settled.count() == b.n:
		c.drop(b)
	case b.recent == nil && b.leased == 0:
		delete(c.byKey, b.key)
	}
}

// block gives the block of a key with its data; nil: it is not there any more.
func (l *loop) block(key int64) (*block, error) {
	b, err := l.meta(key)
	if b == nil || err != nil || b.data != nil {
		return b, err
	}
	return b, l.fill(b)
}

// readable is block, but a block that cannot be read is told once and is nil from
// then on: the others go on, and the next start saves what can be saved.
func (l *loop) readable(key int64) (*block, error) {
	if l.unreadable[key] {
		return nil, nil
	}
	b, err := l.block(key)
	if forebay.CodeOf(err) != forebay.CodeDamaged {
		return b, err
	}
	l.log.Error("a block cannot be read and is passed over", "queue", l.queueName(key), "block", key, "error", err)
	l.damaged = true
	l.unreadable[key] = true
	return nil, nil
}

// meta gives the block of a key, maybe without its data.
func (l *loop) meta(key int64) (*block, error) {
	if b := l.blocks.byKey[key]; b != nil {
		return b, nil
	}
	b, found := &block{key: key}, false
	err := l.db.each("SELECT n, sent_at, bytes, jobs FROM block WHERE key = ?", func(s *sqlite.Stmt) error {
		found = true
		b.n, b.sentAt, b.bytes, b.jobs = int(s.ColumnInt64(0)), s.ColumnInt64(1), s.ColumnInt64(2), int(s.ColumnInt64(3))
		return nil
	}, key)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, nil
	}
	if b.n <= 0 || b.n > blockMessages {
		return nil, forebay.Errorf(forebay.CodeDamaged, "sqlite: block", "block %d says that it has %d messages", key, b.n)
	}
	err = l.db.each("SELECT settled FROM part WHERE key = ?", func(s *sqlite.Stmt) error {
		var err error
		b.settled, err = marksOf(key, columnBytes(s, 0))
		return err
	}, key)
	if err != nil {
		return nil, err
	}
	err = l.db.each("SELECT idx, grp <> 0 FROM again WHERE key = ?", func(s *sqlite.Stmt) error {
		if i := int(s.ColumnInt64(0)) & (blockMessages - 1); s.ColumnBool(1) {
			b.noted.set(i)
		} else {
			b.skip.set(i)
		}
		return nil
	}, key)
	return b, err
}

// fill reads the data of a block. Damaged records are put aside.
func (l *loop) fill(b *block) error {
	var err error
	if b.data, err = l.stored(b.key); err != nil {
		return err
	}
	var bad int
	b.recs, bad = records(b.data, b.n)
	if bad > 0 {
		return l.putAside(b)
	}
	if int(b.recs[b.n-1][1]) != len(b.data) { // b.n is wrong: there are more
		b.data, b.recs = nil, nil
		return forebay.Errorf(forebay.CodeDamaged, "sqlite: block", "%d messages are not all", b.n)
	}
	l.blocks.cache(b)
	return nil
}

// isStored tells whether a message is not settled yet.
func (l *loop) isStored(key int64, idx int) (bool, error) {
	if b := l.blocks.byKey[key]; b != nil {
		return !b.settled.has(idx), nil
	}
	n, err := l.db.int("SELECT 1 FROM block WHERE key = ?", key)
	if err != nil || n == 0 {
		return false, err
	}
	var settled bitmap
	err = l.db.each("SELECT settled FROM part WHERE key = ?", func(s *sqlite.Stmt) error {
		var err error
		settled, err = marksOf(key, columnBytes(s, 0))
		return err
	}, key)
	return err == nil && !settled.has(idx), err
}
