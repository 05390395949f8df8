// An HTTP server that jobs are pushed to. It checks the signature as Standard Webhooks
// says, tells progress while it works, and answers with a result.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const key = Buffer.from(process.env.SECRET.replace(/^whsec_/, ''), 'base64');
const attempts = new Map(); // by id of the webhook

function signed(headers, body) {
  const id = headers['webhook-id'];
  const at = headers['webhook-timestamp'];
  if (!id || Math.abs(Date.now() / 1000 - Number(at)) > 300) return false;
  const want = createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest();
  return (headers['webhook-signature'] ?? '').split(' ').some((one) => {
    const [version, text] = one.split(',');
    const got = Buffer.from(text ?? '', 'base64');
    return version === 'v1' && got.length === want.length && timingSafeEqual(got, want);
  });
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const answer = (status, value, headers = {}) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(value));
  };
  if (!signed(request.headers, body)) return answer(401, { error: 'the signature is wrong' });
  const job = JSON.parse(body);
  const id = request.headers['webhook-id'];
  const attempt = (attempts.get(id) ?? 0) + 1;
  attempts.set(id, attempt);
  if (id !== job.jobId) return answer(400, { error: 'the id is not that of the job' });
  if (job.data.refuse) return answer(422, { error: 'never' });
  if (job.data.busy >= attempt) return answer(503, { error: 'busy' }, { 'retry-after': '0' });
  const told = await fetch(job.progressUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ items: [{ receipt: job.receipt, progress: { stage: 'pushed', percent: 50 }, log: [{ text: 'from the target' }] }] }),
  });
  const { items } = await told.json();
  if (items[0].error) return answer(500, items[0].error);
  answer(200, { attempt, data: job.data });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/hook?n=1`));
process.stdin.resume().on('end', () => process.exit(0)); // as the test ends
