// Goes through what the unmodified AWS SDK asks of SQS, and prints a line for each
// thing that was as it should be; the first one that was not ends it.
import assert from 'node:assert/strict'
import * as aws from '@aws-sdk/client-sqs'

const sqs = new aws.SQSClient({}) // all from the environment
const call = (name, input) => sqs.send(new aws[name + 'Command'](input))
const check = async (what, run) => {
  await run()
  console.log('ok', what)
}
const refused = (name, input, error) =>
  assert.rejects(call(name, input), (err) => (aws[error] ? err instanceof aws[error] : err.name === error) || assert.fail(`${err.name}: ${err.message}, want ${error}`))

let url, dead, deadArn, fifo
await check('queues are made, found and listed', async () => {
  ;({ QueueUrl: dead } = await call('CreateQueue', { QueueName: 'orders-dead' }))
  deadArn = (await call('GetQueueAttributes', { QueueUrl: dead, AttributeNames: ['QueueArn'] })).Attributes.QueueArn
  ;({ QueueUrl: url } = await call('CreateQueue', {
    QueueName: 'orders', tags: { team: 'shop' },
    Attributes: { VisibilityTimeout: '30', RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadArn, maxReceiveCount: 2 }) },
  }))
  ;({ QueueUrl: fifo } = await call('CreateQueue', { QueueName: 'users.fifo', Attributes: { FifoQueue: 'true', ContentBasedDeduplication: 'true' } }))
  assert.equal((await call('GetQueueUrl', { QueueName: 'orders' })).QueueUrl, url)
  assert.deepEqual((await call('ListQueues', { QueueNamePrefix: 'orders' })).QueueUrls.sort(), [url, dead].sort())
  assert.deepEqual((await call('ListDeadLetterSourceQueues', { QueueUrl: dead })).queueUrls, [url])
  await refused('GetQueueUrl', { QueueName: 'nowhere' }, 'QueueDoesNotExist')
  await refused('CreateQueue', { QueueName: 'orders', Attributes: { VisibilityTimeout: '31' } }, 'QueueNameExists')
  await refused('CreateQueue', { QueueName: 'bad name' }, 'InvalidParameterValue')
})

await check('attributes, tags and permissions', async () => {
  await call('SetQueueAttributes', { QueueUrl: url, Attributes: { DelaySeconds: '0', MessageRetentionPeriod: '3600' } })
  const { Attributes } = await call('GetQueueAttributes', { QueueUrl: url, AttributeNames: ['All'] })
  assert.equal(Attributes.MessageRetentionPeriod, '3600')
  assert.equal(Attributes.SqsManagedSseEnabled, 'true')
  await refused('SetQueueAttributes', { QueueUrl: url, Attributes: { VisibilityTimeout: '43201' } }, 'InvalidAttributeValue')
  await call('TagQueue', { QueueUrl: url, Tags: { cost: '7' } })
  await call('UntagQueue', { QueueUrl: url, TagKeys: ['team'] })
  assert.deepEqual((await call('ListQueueTags', { QueueUrl: url })).Tags, { cost: '7' })
  await call('AddPermission', { QueueUrl: url, Label: 'one', AWSAccountIds: ['123456789012'], Actions: ['SendMessage'] })
  const { Policy } = (await call('GetQueueAttributes', { QueueUrl: url, AttributeNames: ['Policy'] })).Attributes
  assert.equal(JSON.parse(Policy).Statement.length, 1)
  await call('RemovePermission', { QueueUrl: url, Label: 'one' })
})

const body = 'größe \u{1F600}\r\n"<&>"'
await check('a message goes through as it was', async () => {
  const sent = await call('SendMessage', {
    QueueUrl: url, MessageBody: body,
    MessageAttributes: { n: { DataType: 'Number', StringValue: '1.5' }, b: { DataType: 'Binary', BinaryValue: new Uint8Array([0, 255, 1]) } },
  })
  const { Messages: [m] } = await call('ReceiveMessage', { QueueUrl: url, WaitTimeSeconds: 5, MessageAttributeNames: ['All'], MessageSystemAttributeNames: ['All'] })
  assert.equal(m.MessageId, sent.MessageId)
  assert.equal(m.Body, body)
  assert.equal(m.MessageAttributes.n.StringValue, '1.5')
  assert.deepEqual([...m.MessageAttributes.b.BinaryValue], [0, 255, 1])
  assert.equal(m.MD5OfMessageAttributes, sent.MD5OfMessageAttributes)
  assert.equal(m.Attributes.ApproximateReceiveCount, '1')
  await call('ChangeMessageVisibility', { QueueUrl: url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 60 })
  assert.equal((await call('ReceiveMessage', { QueueUrl: url })).Messages, undefined)
  await call('DeleteMessage', { QueueUrl: url, ReceiptHandle: m.ReceiptHandle })
  await call('DeleteMessage', { QueueUrl: url, ReceiptHandle: m.ReceiptHandle })
  await refused('DeleteMessage', { QueueUrl: url, ReceiptHandle: 'no handle' }, 'ReceiptHandleIsInvalid')
})

await check('batches answer by entry', async () => {
  const Entries = Array.from({ length: 10 }, (_, i) => ({ Id: `e${i}`, MessageBody: `m${i}`, DelaySeconds: i === 9 ? 901 : 0 }))
  const sent = await call('SendMessageBatch', { QueueUrl: url, Entries })
  assert.equal(sent.Successful.length, 9)
  assert.equal(sent.Failed[0].Id, 'e9')
  assert.equal(sent.Failed[0].SenderFault, true)
  const { Messages } = await call('ReceiveMessage', { QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 })
  assert.equal(Messages.length, 9)
  const handles = Messages.map((m, i) => ({ Id: String(i), ReceiptHandle: m.ReceiptHandle }))
  const changed = await call('ChangeMessageVisibilityBatch', { QueueUrl: url, Entries: handles.map((h) => ({ ...h, VisibilityTimeout: 100 })) })
  assert.equal(changed.Successful.length, 9)
  const gone = await call('DeleteMessageBatch', { QueueUrl: url, Entries: handles })
  assert.equal(gone.Successful.length, 9)
  await refused('SendMessageBatch', { QueueUrl: url, Entries: [] }, 'EmptyBatchRequest')
  await refused('SendMessageBatch', { QueueUrl: url, Entries: [Entries[0], Entries[0]] }, 'BatchEntryIdsNotDistinct')
  await refused('SendMessageBatch', { QueueUrl: url, Entries: [...Entries, { Id: 'x', MessageBody: 'x' }] }, 'TooManyEntriesInBatchRequest')
})

await check('a long poll is woken by the send', async () => {
  const begun = Date.now()
  const poll = call('ReceiveMessage', { QueueUrl: url, WaitTimeSeconds: 20 })
  await call('SendMessage', { QueueUrl: url, MessageBody: 'wake' })
  const { Messages: [m] } = await poll
  assert.ok(Date.now() - begun < 15_000)
  await call('DeleteMessage', { QueueUrl: url, ReceiptHandle: m.ReceiptHandle })
})

await check('poison goes to the dead-letter queue, and back', async () => {
  const { MessageId } = await call('SendMessage', { QueueUrl: url, MessageBody: 'poison' })
  for (let i = 0; i < 2; i++) {
    const { Messages: [m] } = await call('ReceiveMessage', { QueueUrl: url, WaitTimeSeconds: 5 })
    await call('ChangeMessageVisibility', { QueueUrl: url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0 })
  }
  assert.equal((await call('ReceiveMessage', { QueueUrl: url, WaitTimeSeconds: 1 })).Messages, undefined)
  const attributes = await call('GetQueueAttributes', { QueueUrl: dead, AttributeNames: ['ApproximateNumberOfMessages'] })
  assert.equal(attributes.Attributes.ApproximateNumberOfMessages, '1')
  const { TaskHandle } = await call('StartMessageMoveTask', { SourceArn: deadArn })
  const { Messages: [back] } = await call('ReceiveMessage', { QueueUrl: url, WaitTimeSeconds: 10 })
  assert.equal(back.Body, 'poison')
  assert.notEqual(back.MessageId, MessageId)
  let task
  for (let i = 0; i < 100 && task?.Status !== 'COMPLETED'; i++) {
    ;({ Results: [task] } = await call('ListMessageMoveTasks', { SourceArn: deadArn }))
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.equal(task.Status, 'COMPLETED')
  await refused('CancelMessageMoveTask', { TaskHandle }, 'InvalidParameterValue')
  await call('DeleteMessage', { QueueUrl: url, ReceiptHandle: back.ReceiptHandle })
})

await check('FIFO keeps order within a group and drops repetitions', async () => {
  const first = await call('SendMessage', { QueueUrl: fifo, MessageBody: '1', MessageGroupId: 'a' })
  const again = await call('SendMessage', { QueueUrl: fifo, MessageBody: '1', MessageGroupId: 'a' })
  assert.equal(again.MessageId, first.MessageId)
  assert.equal(again.SequenceNumber, first.SequenceNumber)
  await call('SendMessage', { QueueUrl: fifo, MessageBody: '2', MessageGroupId: 'a' })
  await call('SendMessage', { QueueUrl: fifo, MessageBody: '3', MessageGroupId: 'b' })
  const got = await call('ReceiveMessage', { QueueUrl: fifo, WaitTimeSeconds: 2, MaxNumberOfMessages: 1 })
  assert.equal(got.Messages[0].Body, '1')
  const other = await call('ReceiveMessage', { QueueUrl: fifo, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 })
  assert.deepEqual(other.Messages.map((m) => m.Body), ['3'])
  await call('DeleteMessage', { QueueUrl: fifo, ReceiptHandle: got.Messages[0].ReceiptHandle })
  const next = await call('ReceiveMessage', { QueueUrl: fifo, WaitTimeSeconds: 2 })
  assert.equal(next.Messages[0].Body, '2')
  await refused('SendMessage', { QueueUrl: fifo, MessageBody: 'x' }, 'MissingParameter')
})

await check('queues are purged and deleted', async () => {
  await call('PurgeQueue', { QueueUrl: fifo })
  await refused('PurgeQueue', { QueueUrl: fifo }, 'PurgeQueueInProgress')
  await call('DeleteQueue', { QueueUrl: fifo })
  await refused('SendMessage', { QueueUrl: fifo, MessageBody: 'x', MessageGroupId: 'g' }, 'QueueDoesNotExist')
  await refused('CreateQueue', { QueueName: 'users.fifo', Attributes: { FifoQueue: 'true' } }, 'QueueDeletedRecently')
})
console.log('done')
