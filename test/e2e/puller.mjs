// A worker that pulls: it leases jobs, extends the leases, tells progress and settles,
// until its standard input ends. A server that is gone for a while is asked again.
import { setTimeout as sleep } from 'node:timers/promises';

const [server, queue] = process.argv.slice(2);
let ended = false;
process.stdin.resume().on('end', () => { ended = true; });
const count = { leased: 0, settled: 0, lost: 0, unreached: 0 };

async function call(path, body) {
  while (!ended) {
    try {
      const response = await fetch(server + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(20_000),
      });
      if (response.ok) return await response.json();
      if (response.status < 500) throw Object.assign(new Error(`${path}: ${response.status} ${await response.text()}`), { fatal: true });
    } catch (error) {
      if (error.fatal) throw error;
    }
    count.unreached++;
    await sleep(100);
  }
  return { items: [] };
}

while (!ended) {
  const { items } = await call(`/api/queues/${queue}/lease`, { max: 8, wait: '1s', leaseSeconds: 20 });
  count.leased += items.length;
  if (items.length === 0) continue;
  await call('/api/leases/progress', { items: items.map(({ receipt }) => ({ receipt, progress: { stage: 'pulled', percent: 50 } })) });
  await sleep(30); // the work
  const { items: held } = await call('/api/leases/extend', { receipts: items.map((job) => job.receipt), leaseSeconds: 20 });
  const mine = items.filter((_, i) => held[i] && !held[i].error); // the others run elsewhere, or again
  count.lost += items.length - mine.length;
  if (mine.length === 0) continue;
  const { items: done } = await call('/api/leases/settle', {
    items: mine.map((job) => ({ receipt: job.receipt, verdict: 'ack', result: { doubled: job.data.n * 2 } })),
  });
  for (const { error } of done) error ? count.lost++ : count.settled++;
  console.log(`settled ${count.settled}`);
}
console.log(`ended ${JSON.stringify(count)}`);
