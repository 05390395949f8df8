// What the server says of what is wrong, in Chinese. It says it in English, with names and
// numbers in it; a code heads it, and these are the sentences that people meet most. What
// is not here is shown as the server says it, below what its code means.
const said: [RegExp, string][] = [
  // of input that does not fit the API's document
  [/^validation failed$/, "输入未通过校验。"],
  [/^unexpected property$/, "不认识的字段"],
  [/^expected required property (.+) to be present$/, "缺少必需字段 $1"],
  [/^expected (?:boolean)$/, "应为布尔值"],
  [/^expected number$/, "应为数字"],
  [/^expected integer$/, "应为整数"],
  [/^expected string$/, "应为文本"],
  [/^expected array$/, "应为数组"],
  [/^expected object$/, "应为对象"],
  [/^expected number >= (.+)$/, "应不小于 $1"],
  [/^expected number > (.+)$/, "应大于 $1"],
  [/^expected number <= (.+)$/, "应不大于 $1"],
  [/^expected number < (.+)$/, "应小于 $1"],
  [/^expected length >= (\d+)$/, "长度至少为 $1"],
  [/^expected length <= (\d+)$/, "长度至多为 $1"],
  [/^expected array length >= (\d+)$/, "至少要有 $1 项"],
  [/^expected array length <= (\d+)$/, "至多可有 $1 项"],
  [/^expected value to be one of "(.*)"$/, "只能是以下之一：$1"],
  [/^expected string to match pattern (.+)$/, "应符合格式 $1"],
  [/^expected string to be base64 encoded$/, "应为 base64 编码"],
  [/^expected string to be RFC 3339 date-time$/, "应为 RFC 3339 时间"],
  [/^the body is not JSON: (.*)$/, "请求内容不是 JSON：$1"],
  [/^the body is empty; it must be JSON$/, "请求内容为空，应为 JSON。"],
  [/^the body is larger than (\d+) bytes, the most that is allowed here$/, "请求内容超过上限 $1 字节。"],
  [/^the filter is wrong at column (\d+): (.*)$/, "过滤条件第 $1 列有误：$2"],
  [/^(.+) is (\S+); (\S+) to (\S+) are allowed$/, "$1 为 $2；允许 $3 到 $4"],
  // of what is not there
  [/^no job has the id "(.*)"$/, "没有 id 为 $1 的任务。"],
  [/^no run has the id "(.*)"$/, "没有 id 为 $1 的运行。"],
  [/^no key has the id "(.*)"$/, "没有 id 为 $1 的密钥。"],
  [/^there is no queue "(.*?)".*$/, "没有队列 $1；队列随第一条消息而产生。"],
  [/^there is no schedule "(.*)"$/, "没有计划 $1。"],
  [/^there is no flow "(.*)"$/, "没有流程 $1。"],
  [/^there is no rule "(.*)"$/, "没有规则 $1。"],
  [/^there is no (?:saved )?view "(.*)"$/, "没有保存的视图 $1。"],
  [/^there is no dead letter (\d+)$|^no dead letter has number (\d+)$/, "没有编号为 $1$2 的死信。"],
  [/^there is no bad row (\d+)$/, "没有编号为 $1 的坏行。"],
  [/^there is no action "(.*)" on dead letters$/, "没有死信操作 $1。"],
  [/^the message is gone$/, "消息已不存在。"],
  [/^no worker of this server works on the queue "(.*)"$/, "此服务器没有处理队列 $1 的工作进程。"],
  // of what its state does not allow
  [/^the job is active$/, "任务正在执行。"],
  [/^the job is not active; cancel it$/, "任务没有在执行；请取消它。"],
  [/^the job has not finished; cancel it first$/, "任务尚未结束；请先取消。"],
  [/^the job has finished(?:: it is (.*))?$/, "任务已结束。"],
  [/^the action is (\S+)(?: already)?$/, "该操作当前状态为 $1。"],
  [/^there is a schedule "(.*)" already$/, "已有名为 $1 的计划。"],
  [/^the live key (\S+) has the name "(.*)" already$/, "有效密钥 $1 已使用名称 $2。"],
  [/^there are (\d+) keys already, the most a ring takes$/, "已有 $1 个密钥，达到上限。"],
  [/^there are (\d+) views already, the most that are kept.*$/, "已保存 $1 个视图，达到上限。"],
  [/^the schedule "(.*)" has revision (\d+), not (\d+): somebody has changed it$/, "计划 $1 已被他人更改（修订 $2，而非 $3）。"],
  [/^the request with this (.+) is under way; ask again soon$/, "带有此 $1 的请求正在处理，请稍后再试。"],
  // of who may what
  [/^the key holds for (.*) only, not for (?:the queue )?(.*)$/, "此密钥只适用于 $1，不适用于 $2。"],
  [/^the key is not known.*$|^this key is not known.*$/, "密钥未知。"],
  [/^the key of this session has not the scope (.*), which is needed here$/, "此会话的密钥缺少所需权限 $1。"],
  [/^the key of this session is good no longer$/, "此会话的密钥已失效。"],
  [/^an admin key is needed here$/, "此处需要管理密钥。"],
  [/^with a session, pages of other origins change nothing here$/, "其他来源的页面不能在此更改内容。"],
  [/^pages of other origins do not sign in here$/, "其他来源的页面不能在此登录。"],
  // of the server
  [/^the server is shutting down$/, "服务器正在关闭。"],
  [/^the engine is closed$/, "存储引擎已关闭。"],
  [/^no answer$/, "没有响应。"],
  [/^this engine cannot (.*)$/, "此引擎不能：$1"],
  [/^this server keeps no audit log$/, "此服务器不记录审计日志。"],
  [/^this server keeps no schedules$/, "此服务器没有计划功能。"],
  [/^this server streams no (?:jobs|runs)$/, "此服务器不提供实时流。"],
  [/^the cron text is empty.*$/, "cron 表达式为空。"],
  [/^the time zone "?(.*?)"? is not known.*$/, "未知时区 $1；允许 Europe/Berlin、Asia/Shanghai、UTC 等名称。"],
  [/^neither cron nor every says when; one of them is needed$/, "需要 cron 或 every 之一。"],
];

// translate gives a sentence of the server in Chinese; undefined: it is not known.
export function translate(text: string): string | undefined {
  for (const [what, words] of said) {
    const m = what.exec(text);
    if (m) return words.replace(/\$(\d)/g, (_, n: string) => m[Number(n)] ?? "");
  }
  return undefined;
}
