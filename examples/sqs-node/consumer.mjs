// Takes events off the queue, ten at a time, and writes them. Each one succeeds or
// fails by itself: what is written is deleted, what failed comes again, and after the
// queue's maxReceiveCount goes to the dead-letter queue.
//
//   AWS_SQS_QUEUE_URL=… node consumer.mjs
import { SQSClient, ReceiveMessageCommand, DeleteMessageBatchCommand, ChangeMessageVisibilityBatchCommand } from '@aws-sdk/client-sqs'

const queue = process.env.AWS_SQS_QUEUE_URL
if (!queue) throw new Error('AWS_SQS_QUEUE_URL is not set: the URL of the queue')
const sqs = new SQSClient({})
const stopping = new AbortController()
process.once('SIGTERM', () => stopping.abort())

// write stands for the database: a line of JSON. An event that says so fails.
async function write(event) {
  if (typeof event.eventId !== 'string') throw new Error('the event has no eventId')
  if (event.payload?.fail) throw new Error('this event cannot be written')
  console.log('written', JSON.stringify({ eventId: event.eventId, eventType: event.eventType }))
}

// again is how many seconds a failed message waits: twice as long with each receive.
const again = (m) => Math.min(2 ** Number(m.Attributes?.ApproximateReceiveCount ?? 1), 300)

async function handle(messages) {
  const results = await Promise.allSettled(messages.map(async (m) => write(JSON.parse(m.Body))))
  const entry = (m, i) => ({ Id: String(i), ReceiptHandle: m.ReceiptHandle })
  const done = messages.map(entry).filter((_, i) => results[i].status === 'fulfilled')
  const failed = messages
    .map((m, i) => ({ ...entry(m, i), VisibilityTimeout: again(m) }))
    .filter((_, i) => results[i].status === 'rejected')
  for (const r of results) if (r.status === 'rejected') console.log('failed', r.reason.message)

  if (done.length) {
    const { Failed = [] } = await sqs.send(new DeleteMessageBatchCommand({ QueueUrl: queue, Entries: done }))
    for (const f of Failed) console.error('not deleted, it will come again:', f.Code, f.Message)
  }
  if (failed.length) await sqs.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: queue, Entries: failed }))
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

console.log('consumer polls', queue)
let failures = 0
while (!stopping.signal.aborted) {
  try {
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({
        QueueUrl: queue,
        MaxNumberOfMessages: 10,
        WaitTimeSeconds: 20,
        VisibilityTimeout: 30,
        MessageSystemAttributeNames: ['ApproximateReceiveCount'],
      }),
      { abortSignal: stopping.signal },
    )
    failures = 0
    if (Messages.length) await handle(Messages) // not cut off by SIGTERM: what was received is settled
  } catch (err) {
    if (stopping.signal.aborted) break
    console.error('the queue does not answer:', err.name, err.message)
    await pause(Math.min(200 * 2 ** failures++, 30_000))
  }
}
console.log('consumer stopped')
