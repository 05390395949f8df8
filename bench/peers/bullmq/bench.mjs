// One side of the comparison of jobs: adds no-op jobs, 64 at a time, or works them.
//   node bench.mjs work PORT JOBS CONCURRENCY   prints "ready", then "done" after JOBS jobs
//   node bench.mjs add  PORT JOBS INFLIGHT      prints "added"
//   node bench.mjs http PORT LISTEN             answers POST with 202 once the job is added
import http from 'node:http';
import { Queue, Worker } from 'bullmq';

const [mode, port, count, width] = process.argv.slice(2);
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };
const data = { note: 'x'.repeat(280) };

async function work(jobs, concurrency) {
  let done = 0;
  const worker = new Worker('bench', async () => {}, { connection, concurrency });
  worker.on('completed', () => {
    if (++done === jobs) console.log('done');
  });
  await worker.waitUntilReady();
  console.log('ready');
}

async function add(jobs, inflight) {
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  let next = 0;
  const producer = async () => {
    while (next++ < jobs) await queue.add('noop', data);
  };
  await Promise.all(Array.from({ length: inflight }, producer));
  console.log('added');
  await queue.close();
}

function serve(address) {
  const queue = new Queue('http', { connection });
  const server = http.createServer((req, res) => {
    const parts = [];
    req.on('data', (part) => parts.push(part));
    req.on('end', async () => {
      const body = JSON.parse(Buffer.concat(parts));
      const job = await queue.add(body.name, body.data);
      res.writeHead(202, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ jobId: job.id }));
    });
  });
  const [host, listen] = address.split(':');
  server.listen(Number(listen), host, () => console.log('ready'));
}

switch (mode) {
  case 'work': await work(Number(count), Number(width)); break;
  case 'add': await add(Number(count), Number(width)); break;
  case 'http': serve(count); break;
  default: throw new Error(`unknown mode ${mode}`);
}
