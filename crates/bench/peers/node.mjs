// Runs tool inputs on the TypeScript SDK's local memory tool and times each call.
//
// One request a line: {"inputs": [...]}; one answer a line: {"nanos": [...], "failed": n}.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { BetaLocalFilesystemMemoryTool } from "@anthropic-ai/sdk/tools/memory/node";

const { version } = createRequire(import.meta.url)("@anthropic-ai/sdk/package.json");
const tool = await BetaLocalFilesystemMemoryTool.init(process.argv[2]);
console.log(JSON.stringify({ version }));
for await (const line of createInterface({ input: process.stdin })) {
  const nanos = [];
  let failed = 0;
  for (const input of JSON.parse(line).inputs) {
    const start = process.hrtime.bigint();
    try {
      await tool[input.command](input);
    } catch (error) {
      failed += 1;
      console.error(String(error));
    }
    nanos.push(Number(process.hrtime.bigint() - start));
  }
  console.log(JSON.stringify({ nanos, failed }));
}
