// Takes events over HTTP, checks them, and puts them on the queue. It does nothing
// else, so that it answers at once.
//
//   AWS_SQS_QUEUE_URL=… PORT=3000 node producer.mjs
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { SQSClient, SendMessageCommand } from '@aws-sdk/client-sqs'

const queue = process.env.AWS_SQS_QUEUE_URL
if (!queue) throw new Error('AWS_SQS_QUEUE_URL is not set: the URL of the queue')
const sqs = new SQSClient({}) // region, credentials and endpoint come from the environment
const mostBytes = 256 * 1024

// problem says what is wrong with an event; nothing: it is good.
function problem(event) {
  if (typeof event !== 'object' || event === null || Array.isArray(event)) return 'the event is not an object'
  const { eventType, payload, userId } = event
  if (typeof eventType !== 'string' || eventType === '' || eventType.length > 50) return 'eventType is not a text of 1 to 50 characters'
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return 'payload is not an object'
  if (userId !== undefined && typeof userId !== 'string') return 'userId is not a text'
}

async function bodyOf(request) {
  let size = 0
  const parts = []
  for await (const part of request) {
    size += part.length
    if (size > mostBytes) return
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

async function take(request) {
  if (request.method !== 'POST' || request.url !== '/ingestion/event') return [404, { error: 'POST /ingestion/event is all there is' }]
  const body = await bodyOf(request)
  if (body === undefined) return [413, { error: `an event has at most ${mostBytes} bytes` }]
  let event
  try {
    event = JSON.parse(body)
  } catch (err) {
    return [400, { error: `the body is not JSON: ${err.message}` }]
  }
  const wrong = problem(event)
  if (wrong) return [400, { error: wrong }]

  // The event names itself, so that a consumer can tell a message that comes twice.
  const message = { ...event, eventId: event.eventId ?? randomUUID(), receivedAt: new Date().toISOString() }
  const command = new SendMessageCommand({
    QueueUrl: queue,
    MessageBody: JSON.stringify(message),
    MessageAttributes: { eventType: { DataType: 'String', StringValue: event.eventType } },
    ...(queue.endsWith('.fifo') && { MessageGroupId: event.userId ?? message.eventId, MessageDeduplicationId: message.eventId }),
  })
  try {
    const { MessageId } = await sqs.send(command)
    return [202, { messageId: MessageId, eventId: message.eventId }]
  } catch (err) {
    console.error('not sent:', err.name, err.message)
    return [503, { error: 'the queue does not take it now; send it again' }]
  }
}

const server = createServer(async (request, response) => {
  const [status, answer] = await take(request)
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
})
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => console.log('producer listens on', server.address().port))
process.once('SIGTERM', () => server.close(() => console.log('producer stopped')))
