// BullMQ, driven by a test: a command a line on stdin, an answer or an event a line on
// stdout. argv: port, version (5 or 6), prefix.
import readline from 'node:readline'
import process from 'node:process'
import Redis from 'ioredis'

const [port, version, prefix] = process.argv.slice(2)
const { Queue, Worker, QueueEvents, FlowProducer, UnrecoverableError } = await import(version === '5' ? 'bullmq5' : 'bullmq')
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null }
const queues = new Map()
const hands = new Map() // workers by queue that take a job when they are told to
const held = new Map() // what they have taken, by id
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

// route gives the handler of bull-board for a path, as the server beneath it would.
function route (routes, method, path) {
  for (const r of routes) {
    const names = []
    const pattern = r.route.replace(/:(\w+)/g, (_, name) => { names.push(name); return '([^/]+)' })
    const found = r.method === method && new RegExp('^' + pattern + '$').exec(path)
    if (found) return { r, params: Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(found[i + 1])])) }
  }
  throw new Error(`bull-board has no ${method} ${path}`)
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
  // board asks bull-board's own API, without a server between.
  async board ({ queue: q, method, path, query, body }) {
    const [{ createBullBoard }, { BullMQAdapter }] = await Promise.all([import('@bull-board/api'), import('@bull-board/api/bullMQAdapter')])
    const server = { setQueues (all) { this.queues = all; return this }, setApiRoutes (all) { this.routes = all; return this } }
    for (const f of ['setViewsPath', 'setStaticPath', 'setUIConfig', 'setEntryRoute', 'setErrorHandler']) server[f] = () => server
    createBullBoard({ queues: [new BullMQAdapter(queue(q))], serverAdapter: server, options: { validateResponses: true } })
    const { r, params } = route(server.routes, method, path)
    const out = await r.handler({ queues: server.queues, params, query: query ?? {}, body: body ?? {}, headers: {} })
    return { status: out.status ?? 200, body: out.body }
  },
  async take ({ queue: q }) {
    if (!hands.has(q)) {
      hands.set(q, new Worker(q, null, { connection, prefix, autorun: false }))
      hands.get(q).on('error', () => {})
    }
    const token = 'hand' + Math.random()
    const job = await hands.get(q).getNextJob(token, { block: false })
    if (job) held.set(job.id, { job, token })
    return { id: job?.id ?? '' }
  },
  async end ({ id, how, value }) {
    const { job, token } = held.get(id)
    held.delete(id)
    const failure = (E) => Object.assign(new E(value), { stack: value })
    if (how === 'complete') await job.moveToCompleted(value, token, false)
    if (how === 'retry') await job.moveToFailed(failure(Error), token, false)
    if (how === 'fail') await job.moveToFailed(failure(UnrecoverableError), token, false)
    if (how === 'release') await job.moveToWait(token)
    return {}
  },
  async tell ({ id, progress, line }) {
    await held.get(id).job.updateProgress(progress)
    await held.get(id).job.log(line)
    return {}
  },
  // change is what a client does to a job that nobody works on.
  async change ({ queue: q, id, how, value }) {
    const job = await queue(q).getJob(id)
    if (how === 'promote') await job.promote()
    if (how === 'priority') await job.changePriority({ priority: value })
    if (how === 'data') await job.updateData(value)
    if (how === 'retry') await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true })
    if (how === 'remove') await job.remove()
    return {}
  },
  async metrics ({ queue: q, type }) { return await queue(q).getMetrics(type) },
  async workers ({ queue: q }) { return { all: await queue(q).getWorkers() } },
  async finished ({ queue: q, id, ms }) {
    const j = await queue(q).getJob(id)
    // From the first event on: one that reads from "$" misses what comes between its look
    // whether the job has finished and its first XREAD.
    const ev = new QueueEvents(q, { connection, prefix, lastEventId: '0-0' })
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
