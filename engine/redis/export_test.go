package redis

// Nudge makes an engine look at its clock again, which a test has moved.
func (e *Engine) Nudge() {
	e.keeper.sooner(0)
	e.waits.wakeAll()
}
