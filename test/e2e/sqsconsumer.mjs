// The unmodified sqs-consumer takes N messages, ten at a time; every seventh fails
// once. It prints "seen <body>" for each success and "stopped" at the end.
import { SQSClient } from '@aws-sdk/client-sqs'
import { Consumer } from 'sqs-consumer'

const [queueUrl, count] = [process.argv[2], Number(process.argv[3])]
const failed = new Set()
let seen = 0
const consumer = Consumer.create({
  queueUrl, sqs: new SQSClient({}), batchSize: 10, visibilityTimeout: 3, heartbeatInterval: 1, terminateVisibilityTimeout: true,
  handleMessageBatch: async (messages) => {
    const done = []
    for (const m of messages) {
      if (Number(m.Body) % 7 === 0 && !failed.has(m.Body)) {
        failed.add(m.Body)
        continue
      }
      console.log('seen', m.Body)
      done.push(m)
      seen++
    }
    return done
  },
})
for (const event of ['error', 'processing_error', 'timeout_error']) consumer.on(event, (err) => console.log(event, err.message))
consumer.on('response_processed', () => seen >= count && consumer.stop())
consumer.on('stopped', () => console.log('stopped'))
consumer.start()
