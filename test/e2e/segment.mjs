// Sends N events with the unmodified Segment client, and says how it goes:
// a line "delivered <n>" after each batch that was accepted, "failed <reason>" for
// an event that the client gave up, "done" at the end.
import { Analytics } from '@segment/analytics-node'

const [host, count] = [process.argv[2], Number(process.argv[3])]
const analytics = new Analytics({ writeKey: 'e2e', host, flushAt: 50, flushInterval: 200, maxRetries: 100 })

let delivered = 0
const pending = new Set()
const track = (n) => new Promise((resolve) => {
  analytics.track({ event: 'app open', userId: `user-${n % 100}`, properties: { n } }, (err) => {
    if (err) console.log('failed', JSON.stringify(String(err.reason ?? err)))
    else if (++delivered % 50 === 0) console.log('delivered', delivered)
    resolve()
  })
})

for (let n = 0; n < count; n++) {
  const sent = track(n).then(() => pending.delete(sent))
  pending.add(sent)
  if (pending.size >= 500) await Promise.race(pending)
}
await analytics.closeAndFlush()
await Promise.all(pending)
console.log('done')
