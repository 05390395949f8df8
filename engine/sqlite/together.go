package sqlite

// aheadAtMost is how many messages one claim looks at beyond the cursor of a lane.
const aheadAtMost = 256

// together takes more of the group of a message that was just taken at the cursor: those
// that come after it, over what lies between. The cursor passes them by when it comes
// there. They keep the order of their group: it ends at the first that may not be taken.
func (c *claim) together(n *lane, group uint64) error {
	if group == 0 || group&oneAtATime != 0 || len(c.q.tenants) > 0 {
		return nil
	}
	at := n.head
	for _, b := range n.window {
		if c.q.hold.keeps(b.sentAt, c.t.now) {
			return nil
		}
		for i := at; i < b.n; i++ {
			if c.ahead == 0 || !c.room() {
				return nil
			}
			c.ahead--
			if b.skip.has(i) || b.settled.has(i) {
				continue
			}
			hash, key := routing(b.body(i))
			if hash != group {
				continue
			}
			r := ref{key: b.key, idx: i, ord: b.sentAt, sentAt: b.sentAt, group: hash, limitKey: key}
			if b.noted.has(i) || !c.q.groupFor(group).free(c.ls.id, &r) || !c.q.keyFree(key, c.t.now) {
				return nil
			}
			b.skip.set(i)
			n.gaps = true
			if err := c.take(r, b); err != nil {
				return err
			}
		}
		at = 0
	}
	return nil
}
