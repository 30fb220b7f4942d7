// An application that has this package by `npm install PATH`, which links it, and an SDK of its own.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const here = dirname(dirname(fileURLToPath(import.meta.url)));

const SESSION = `
const memory = await StrongroomMemory.open('./store', { tenant: 'clinic/ada', keyFile: 'key', create: true });
const refused = await Promise.resolve(memory.handlers.view({ command: 'view', path: '/memories/none.md' })).catch((e) => e);
console.log(refused instanceof ToolError, JSON.stringify(refused.content));
await memory.close();`;

for (const [form, script] of [
  ['mjs', `import { ToolError } from '@anthropic-ai/sdk/lib/tools/ToolError';
import { StrongroomMemory } from 'strongroom/anthropic';${SESSION}`],
  ['cjs', `const { ToolError } = require('@anthropic-ai/sdk/lib/tools/ToolError');
const { StrongroomMemory } = require('strongroom/anthropic');
(async () => {${SESSION}})();`],
]) {
  test(`a linked package raises the errors of the application's SDK (${form})`, () => {
    const home = mkdtempSync(join(tmpdir(), 'strongroom-'));
    try {
      mkdirSync(join(home, 'node_modules/@anthropic-ai'), { recursive: true });
      symlinkSync(here, join(home, 'node_modules/strongroom'));
      cpSync(join(here, 'node_modules/@anthropic-ai/sdk'), join(home, 'node_modules/@anthropic-ai/sdk'), {
        recursive: true,
      });
      writeFileSync(join(home, `app.${form}`), script);
      const ran = spawnSync(process.execPath, [`app.${form}`], { cwd: home, encoding: 'utf8' });
      assert.equal(ran.status, 0, ran.stderr);
      assert.match(ran.stdout, /^true ".*does not exist/);
    } finally {
      rmSync(home, { recursive: true });
    }
  });
}
