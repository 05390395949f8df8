// What the jobs of these tests do, as their data says.
import { setTimeout as sleep } from "node:timers/promises";

let input = "";
for await (const chunk of process.stdin) input += chunk;
const job = JSON.parse(input);
const tell = (line) => console.log(typeof line === "string" ? line : JSON.stringify(line));

switch (job.data.do) {
  case "steps": // slowly, so that it can be watched
    for (let n = 1; n <= job.data.n; n++) {
      tell({ progress: (n * 100) / job.data.n, stage: `step ${n}`, message: `step ${n} of ${job.data.n}` });
      tell(`step ${n} is done`);
      await sleep(job.data.pause);
    }
    tell({ result: { steps: job.data.n } });
    break;
  case "refuse": // the data are wrong: no attempt more
    console.error(job.data.why);
    process.exit(65);
  default:
    tell({ result: { sent: job.data.to ?? null, exact: job.data.exact ?? null } });
}
