// A program that jobs are handed to: JSON on stdin, lines on stdout, an exit status.
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

let input = '';
for await (const chunk of process.stdin) input += chunk;
const job = JSON.parse(input);
const tell = (line) => console.log(typeof line === 'string' ? line : JSON.stringify(line));

switch (job.data.do) {
  case 'work':
    tell({ progress: 40, stage: 'half', message: 'nearly half' });
    tell('a line of the log');
    tell({ result: { id: job.jobId, attempt: job.attempt, sum: job.data.numbers.reduce((a, b) => a + b, 0) } });
    break;
  case 'talk': // slowly, and a lot
    for (let n = 1; n <= job.data.n; n++) {
      tell({ progress: (n * 100) / job.data.n, stage: `part ${Math.ceil(n / 20)}` });
      tell(`line ${n}`);
      await sleep(job.data.pause);
    }
    tell({ result: 'said' });
    break;
  case 'stages': // one after the other, as fast as it goes
    for (let n = 1; n <= job.data.n; n++) tell({ stage: `stage ${n}`, progress: n });
    break;
  case 'wrong': // the data are: no attempt more
    console.error('this is no order');
    process.exit(65);
  case 'later': // the first attempt, at least
    if (job.attempt > 1) {
      tell({ result: job.attempt });
      break;
    }
    tell({ error: 'not now', retryAfter: 0.2 });
    await sleep(50); // for the line to be written
    process.exit(75);
  case 'fail':
    tell({ error: 'no such user' });
    await sleep(50);
    process.exit(3);
  case 'hang': { // as does its child, whatever they are told
    process.on('SIGTERM', () => {});
    const pids = [process.pid];
    if (!job.data.alone) pids.push(spawn('sh', ['-c', 'trap "" TERM; while :; do sleep 1; done'], { stdio: 'ignore' }).pid);
    tell({ stage: 'hanging', progress: 1, message: pids.join(' ') });
    await sleep(3_600_000);
  }
}
