// BullMQ, driven by a test: a command a line on stdin, an answer or an event a line on
// stdout. argv: port, version (5 or 6), prefix.
import readline from 'node:readline'
import process from 'node:process'
import Redis from 'ioredis'

const [port, version, prefix] = process.argv.slice(2)
const { Queue, Worker, QueueEvents, FlowProducer, UnrecoverableError } = await import(version === '5' ? 'bullmq5' : 'bullmq')
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null }
const queues = new Map()
const say = (o) => process.stdout.write(JSON.stringify(o) + '\n')

function alive (pid) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function queue (name) {
  if (!queues.has(name)) {
    const q = new Queue(name, { connection, prefix })
    q.on('error', () => {})
    queues.set(name, q)
  }
  return queues.get(name)
}

const commands = {
  async add ({ queue: q, name, data, opts }) {
    return { id: (await queue(q).add(name, data, opts)).id }
  },
  async bulk ({ queue: q, jobs }) {
    return { ids: (await queue(q).addBulk(jobs)).map((j) => j.id) }
  },
  async flow ({ tree }) {
    const f = new FlowProducer({ connection, prefix })
    const made = await f.add(tree)
    await f.close()
    return { id: made.job.id, children: (made.children ?? []).map((c) => c.job.id) }
  },
  async job ({ queue: q, id }) {
    const j = await queue(q).getJob(id)
    if (!j) return { state: 'unknown' }
    return {
      state: await j.getState(), name: j.name, data: j.data, returnvalue: j.returnvalue, failedReason: j.failedReason,
      attemptsMade: j.attemptsMade, attemptsStarted: j.attemptsStarted, progress: j.progress, finishedOn: j.finishedOn,
      processedBy: j.processedBy, stacktrace: j.stacktrace, logs: (await queue(q).getJobLogs(id)).logs
    }
  },
  async children ({ queue: q, id }) {
    const j = await queue(q).getJob(id)
    return { values: await j.getChildrenValues(), counts: await j.getDependenciesCount() }
  },
  async finished ({ queue: q, id, ms }) {
    const j = await queue(q).getJob(id)
    const ev = new QueueEvents(q, { connection, prefix })
    try {
      return { value: await j.waitUntilFinished(ev, ms) }
    } catch (e) {
      return { failed: e.message }
    } finally {
      await ev.close()
    }
  },
  async counts ({ queue: q }) { return await queue(q).getJobCounts() },
  async pause ({ queue: q }) { await queue(q).pause(); return {} },
  async resume ({ queue: q }) { await queue(q).resume(); return {} },
  async retry ({ queue: q, id }) { await (await queue(q).getJob(id)).retry(); return {} },
  async obliterate ({ queue: q }) { await queue(q).obliterate({ force: true }); return {} },
  async global ({ queue: q, concurrency }) { await queue(q).setGlobalConcurrency(concurrency); return {} },
  async rate ({ queue: q, max, duration }) { await queue(q).setGlobalRateLimit(max, duration); return {} },
  async scheduler ({ queue: q, id, repeat, template }) { return { id: (await queue(q).upsertJobScheduler(id, repeat, template)).id } },
  async schedulers ({ queue: q }) { return { all: await queue(q).getJobSchedulers() } },
  async events ({ queue: q }) {
    const ev = new QueueEvents(q, { connection, prefix, lastEventId: '0-0' })
    for (const what of ['added', 'waiting', 'active', 'completed', 'failed', 'delayed', 'progress', 'stalled', 'removed', 'deduplicated', 'duplicated', 'retries-exhausted', 'paused', 'resumed']) {
      ev.on(what, (args) => say({ event: what, ...args }))
    }
    ev.on('error', () => {})
    await ev.waitUntilReady()
    return {}
  },
  // work says each start and end. Data fail: the reason; unrecoverable; ms: how long it takes.
  // guard: each job has a key while it is worked, with the process; who finds that of a
  // process that lives says so.
  async work ({ queue: q, opts, guard }) {
    const redis = guard && new Redis(connection)
    const w = new Worker(q, async (job, token) => {
      if (guard) {
        const other = await redis.set('at:' + job.id, process.pid, 'GET')
        if (other && alive(Number(other))) say({ overlap: job.id })
      }
      say({ started: job.id, name: job.name, data: job.data, attempt: job.attemptsMade })
      await job.updateProgress(50)
      await job.log('a line')
      if (job.data?.ms) await new Promise((resolve) => setTimeout(resolve, job.data.ms))
      if (job.data?.unrecoverable) throw new UnrecoverableError(job.data.unrecoverable)
      if (job.data?.fail > job.attemptsMade) throw new Error('failed on purpose')
      if (guard) await redis.del('at:' + job.id)
      say({ ended: job.id })
      return { worked: job.id }
    }, { connection, prefix, drainDelay: 1, ...opts })
    w.on('error', () => {})
    await w.waitUntilReady()
    return {}
  }
}

say({ ready: true })
for await (const line of readline.createInterface({ input: process.stdin })) {
  const c = JSON.parse(line)
  commands[c.cmd](c).then((answer) => say({ answer: c.n, ...answer }), (e) => say({ answer: c.n, error: String(e?.stack ?? e) }))
}
process.exit(0)
