// Runs tool inputs on the TypeScript SDK's local memory tool and times each call.
//
// One request a line: {"inputs": [...]}; one answer a line: {"nanos": [...], "failed": n}.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { BetaLocalFilesystemMemoryTool } from "@anthropic-ai/sdk/tools/memory/node";

const manifest = new URL("node_modules/@anthropic-ai/sdk/package.json", import.meta.url);
const { version } = JSON.parse(readFileSync(manifest, "utf8"));
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
