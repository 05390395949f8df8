// What BullMQ does in one process, measured in it after it has warmed up. Each mode
// prints one number.
//   node redis.mjs add   PORT JOBS INFLIGHT     jobs added a second, one by one
//   node redis.mjs bulk  PORT JOBS SIZE         jobs added a second, by addBulk
//   node redis.mjs drain PORT JOBS CONCURRENCY  waiting no-op jobs worked a second
//   node redis.mjs idle  PORT JOBS              p99 of add-to-start in ms, one job at a time
import { Queue, Worker } from 'bullmq';

const [mode, port, count, width] = process.argv.slice(2);
const jobs = Number(count), n = Number(width);
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };
const data = { note: 'x'.repeat(280) };
const queue = new Queue('bench', { connection });
await queue.waitUntilReady();
const rate = (begun, done) => console.log(done / ((performance.now() - begun) / 1000));

async function add(total) {
  let next = 0;
  await Promise.all(Array.from({ length: n }, async () => { while (next++ < total) await queue.add('noop', data); }));
}

async function bulk(total) {
  for (let i = 0; i < total; i += n) await queue.addBulk(Array.from({ length: n }, () => ({ name: 'noop', data })));
}

async function drain() {
  let done = 0, begun = 0, end;
  const all = new Promise((resolve) => { end = resolve; });
  const worker = new Worker('bench', async () => { begun ||= performance.now(); }, { connection, concurrency: n });
  worker.on('completed', () => { if (++done === jobs) end(); });
  await all;
  rate(begun, jobs);
  await worker.close();
}

async function idle() {
  let started, waits = [];
  const worker = new Worker('bench', async () => { started(performance.now()); }, { connection });
  await worker.waitUntilReady();
  for (let i = 0; i < jobs + 20; i++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    const at = new Promise((resolve) => { started = resolve; });
    const begun = performance.now();
    await queue.add('noop', data);
    const wait = (await at) - begun;
    if (i >= 20) waits.push(wait);
  }
  waits.sort((a, b) => a - b);
  console.log(waits[Math.ceil(waits.length * 0.99) - 1]);
  await worker.close();
}

switch (mode) {
  case 'add': case 'bulk': {
    const run = mode === 'add' ? add : bulk;
    await run(jobs / 10);
    const begun = performance.now();
    await run(jobs);
    rate(begun, jobs);
    break;
  }
  case 'drain': await drain(); break;
  case 'idle': await idle(); break;
  default: throw new Error(`unknown mode ${mode}`);
}
await queue.close();
